"""Bad requests to every method of the four services: each is answered, or refused with a status that says why."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeAlias

import grpc
from google.protobuf.message import Message
from videotree.evolver.v1 import case_pb2, evolver_service_pb2
from videotree.gate.v1 import gate_service_pb2, round_pb2
from videotree.inference.v1 import agent_pb2, agent_service_pb2, chat_pb2, model_service_pb2
from videotree.store.v1 import (
    library_service_pb2,
    run_service_pb2,
    training_service_pb2,
    version_service_pb2,
    workspace_service_pb2,
)

from bench.all_services import DATASET, WORKSPACE, StoreWatch, all_services, sample_questions, store_alone
from bench.any_request import Answers, Sound, ask_anything, services_of
from bench.readers import SKILL
from bench.store_writes import FIRST, WRITES

_KNOWN: Sound = {
    "workspace": [WORKSPACE], "name": [WORKSPACE, "other", "action-reasoning.md"], "run_id": ["r", "train"],
    "source_workspace": [WORKSPACE], "dataset": [DATASET], "kind": [1, 2], "version": ["v1"], "parent": ["v1"],
    "skills_version": ["v1"], "prompts_version": ["v1"], "task_type": ["Action Reasoning"], "endpoint": ["llm"],
    "target_file": ["action-reasoning.md"], "role": [1, 2, 3, 4, 5, 6, "user", "system"], "solver": [0, 1, 2, "tree"],
    "skill_mode": [0, 1, 2, 3, "routed"], "cache_mode": [0, 1, 2, 3], "max_steps": [3], "concurrency": [2],
    "parameters_json": ["", "{}"], "tools_json": [""], "response_format_json": [""], "statistics_json": ["{}"],
    "config_json": ["{}"], "trainer_state_json": ["{}"], "split_manifest_json": ["{}"], "skill_text": [SKILL],
    "current_text": [SKILL], "candidate_text": [SKILL], "base_text": [SKILL], "text": ["What happens?", "a"],
    "op": [1, 2, 3, 4], "edit_budget": [2], "update_mode": [0, 1, 2], "target_kind": [0, 1, 2], "page_size": [0, 10],
    "page_token": [""], "epoch": [0], "step": [0], "answer": ["A"], "run_kind": ["train", "baseline"],
}  # fmt: skip

Effects: TypeAlias = Callable[[], Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Service:
    """The modules that declare a service's RPCs, and valid requests for those that few random ones would reach."""

    modules: Sequence[ModuleType]
    valid: Mapping[str, Callable[[], Message]]


def _round() -> Message:
    questions = [each for each in sample_questions() if each.task_type == "Action Reasoning"][:3]
    ladder = [round_pb2.LadderUnit(unit_id=each.unit_id, question_ids=[each.question_id]) for each in questions]
    spec = round_pb2.GateSpec(
        task_type="Action Reasoning", target_file="action-reasoning.md", candidate_text=SKILL, ladder=ladder
    )
    return gate_service_pb2.ValidateSkillsRequest(
        workspace=WORKSPACE, run_id="r", dataset=DATASET, skills_version="v1", prompts_version="v1", specs=[spec],
        agent=round_pb2.AgentOptions(solver="direct"),
    )  # fmt: skip


def _questions() -> Message:
    return agent_service_pb2.AnswerQuestionsRequest(
        workspace=WORKSPACE, dataset=DATASET, question_ids=[each.question_id for each in sample_questions()[:2]],
        skills=agent_pb2.SkillSet(version="v1"), prompts_version="v1", run_id="r", solver=agent_pb2.SOLVER_TREE,
    )  # fmt: skip


def _ladder() -> Message:
    units = [round_pb2.LadderUnit(unit_id=f"u{number}", question_ids=[f"q{number}"]) for number in range(6)]
    candidates = [gate_service_pb2.LadderCandidate(unit=unit, estimate=0.5) for unit in units]
    return gate_service_pb2.BuildLadderRequest(workspace=WORKSPACE, task_type="Action", candidates=candidates)


def _review() -> Message:
    pairs = [gate_service_pb2.ProbationPair(unit_id=f"u{number}", predecessor_correct=True) for number in range(6)]
    return gate_service_pb2.ReviewProbationRequest(pairs=pairs)


def _simulation() -> Message:
    cells = [gate_service_pb2.FlipRates(win=0.2, loss=0.1)]
    return gate_service_pb2.SimulateGateRequest(ladder_length=20, gate_count=50, cells=cells)


def _proposal() -> Message:
    failure = case_pb2.Case(question_id="q1", text="Why did it happen?")
    pack = case_pb2.CasePack(target_file="action-reasoning.md", task_type="Action Reasoning", failures=[failure])
    return evolver_service_pb2.ProposeEditRequest(
        workspace=WORKSPACE,
        case_pack=pack,
        current_text=SKILL,
        edit_budget=2,
        target_kind=evolver_service_pb2.TARGET_KIND_SKILL,
        update_mode=evolver_service_pb2.UPDATE_MODE_PATCH,
    )


def _copies(calls: Sequence[tuple[str, Message]]) -> Mapping[str, Callable[[], Message]]:
    def copy_of(request: Message) -> Callable[[], Message]:
        def copy() -> Message:
            made = type(request)()
            made.CopyFrom(request)
            return made

        return copy

    return {method: copy_of(request) for method, request in calls}


GATE_RULES: Mapping[str, Callable[[], Message]] = {
    "DecideVerdict": lambda: gate_service_pb2.DecideVerdictRequest(w=8, l=1, n_used=9, n_remaining=4),
    "BuildLadder": _ladder,
    "SimulateGate": _simulation,
    "ReviewProbation": _review,
}
"""Valid requests that need nothing but the gate itself."""


def _chat_call() -> chat_pb2.ChatCall:
    messages = [chat_pb2.Message(role="user", parts=[chat_pb2.ContentPart(text="What happens?")])]
    return chat_pb2.ChatCall(role=chat_pb2.ROLE_AGENT, messages=messages)


SERVICES: Mapping[str, Service] = {
    "inference": Service(
        (model_service_pb2, agent_service_pb2),
        {
            "Chat": lambda: model_service_pb2.ChatRequest(call=_chat_call()),
            "AnswerQuestions": _questions,
            "StreamChat": lambda: model_service_pb2.StreamChatRequest(call=_chat_call()),
        },
    ),
    "gate": Service((gate_service_pb2,), {**GATE_RULES, "ValidateSkills": _round}),
    "evolver": Service((evolver_service_pb2,), {"ProposeEdit": _proposal}),
    "store": Service(
        (library_service_pb2, workspace_service_pb2, version_service_pb2, run_service_pb2, training_service_pb2),
        _copies([*FIRST, *(each.call for each in WRITES.values() if each.call)]),
    ),
}


async def fuzzed_requests(root: Path, rounds: int, seed: int, seconds: float) -> dict[str, Answers]:
    """What came of so many requests to each method of each service; each service stops after its share of `seconds`.

    The store has a data root of its own for this: what it refuses must change nothing, and other services write to
    theirs at any time.
    """
    found: dict[str, Answers] = {}
    share = seconds / len(SERVICES)
    async with all_services(root / "all") as channels:
        for name in ("inference", "gate", "evolver"):
            found[name] = await _fuzzed(channels[name], name, rounds, seed, share, dict)
    async with store_alone(root / "alone") as channel:
        watch = StoreWatch(root / "alone" / "data")
        found["store"] = await _fuzzed(channel, "store", rounds, seed, share, watch)
        watch.close()
    expected = {"all", "alone", "all/data", "all/cache", "alone/data"}
    there = await asyncio.to_thread(lambda: [*root.iterdir(), *root.glob("*/*")])
    strange = sorted({str(path.relative_to(root)) for path in there} - expected)
    found["store"].tally.faults += [f"{name} was written outside the data root" for name in strange]
    return found


async def _fuzzed(
    channel: grpc.aio.Channel, name: str, rounds: int, seed: int, seconds: float, effects: Effects
) -> Answers:
    answers, service = Answers(), SERVICES[name]
    rng, until = random.Random(f"{seed} {name}"), time.monotonic() + seconds
    for _ in range(rounds):
        for descriptor in services_of(*service.modules):
            await ask_anything(channel, descriptor, rng, _KNOWN, answers, effects=effects, valid=service.valid)
        if time.monotonic() > until:
            break
    return answers
