"""AGT-6: requests are checked field by field before anything is asked."""

from typing import Any

import pytest
from videotree.inference.v1 import agent_pb2, agent_service_pb2

from services.inference.domain.agent_skills import SkillMode
from services.inference.domain.errors import InvalidRequest
from services.inference.rpc.agent_translate import answer_request
from services.inference.use_cases.answer_setup import SolverKind


def message(**fields: Any) -> agent_service_pb2.AnswerQuestionsRequest:
    values: dict[str, Any] = {
        "workspace": "w",
        "dataset": "d",
        "question_ids": ["q0"],
        "skills": agent_pb2.SkillSet(version="v1"),
        "prompts_version": "v1",
        "run_id": "r",
        **fields,
    }
    return agent_service_pb2.AnswerQuestionsRequest(**values)


def test_agt_6_what_a_request_leaves_out_has_its_default() -> None:
    request = answer_request(message(), 16, None)
    assert (request.limits.max_steps, request.concurrency, request.salt, request.resume) == (20, 16, None, False)
    assert (request.solver, request.skill_mode) == (SolverKind.TREE, SkillMode.AUTO)


def test_agt_6_an_empty_salt_is_a_value_of_its_own() -> None:
    assert answer_request(message(salt=""), 16, None).salt == ""


def test_evo_12_prompt_overrides_are_handed_on() -> None:
    assert answer_request(message(), 16, None).prompt_overrides == {}
    overrides = {"agent.system.md": "text"}
    assert answer_request(message(prompt_overrides=overrides), 16, None).prompt_overrides == overrides


def test_agt_4_without_skills_no_version_is_needed() -> None:
    skills = agent_pb2.SkillSet()
    assert answer_request(message(skills=skills, skill_mode=agent_pb2.SKILL_MODE_NONE), 16, None).skills_version == ""


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"workspace": ""}, "workspace"),
        ({"run_id": ""}, "run_id"),
        ({"question_ids": []}, "question_ids"),
        ({"question_ids": ["q0", "q0"]}, "question_ids[1]"),
        ({"skills": agent_pb2.SkillSet()}, "skills.version"),
        ({"skills": agent_pb2.SkillSet(version="v1", overrides={"../x.md": "y"})}, "skills.overrides[../x.md]"),
        ({"limits": agent_pb2.AgentLimits(max_steps=201)}, "limits.max_steps"),
        ({"limits": agent_pb2.AgentLimits(concurrency=-1)}, "limits.concurrency"),
        ({"solver": 99}, "solver"),
        ({"skill_mode": 99}, "skill_mode"),
    ],
)
def test_agt_6_a_wrong_request_names_its_field(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        answer_request(message(**fields), 16, None)
    assert caught.value.field == field
