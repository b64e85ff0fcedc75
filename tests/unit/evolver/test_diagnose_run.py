"""EVO-3 to EVO-5: a run is diagnosed as a whole."""

from typing import Any

import pytest

from services.evolver.domain.case import Answered
from services.evolver.domain.case_pack import PackLimits
from services.evolver.domain.errors import DegradedJudgement, InvalidRequest, ModelUnavailable, UnknownRun
from services.evolver.domain.stages import Bounds
from services.evolver.rpc.translate_diagnosis import result_message
from services.evolver.templates import engine_files, load_templates
from services.evolver.use_cases.ask_model import AskModel
from services.evolver.use_cases.diagnose_case import DiagnoseCase
from services.evolver.use_cases.diagnose_run import DiagnoseJob, DiagnoseRun
from tests.builders.cases import SKILL, question, small_tree, submit, view
from tests.fakes.evolver_fakes import InMemoryArchive, ScriptedModel

TEMPLATES = load_templates(engine_files(None))
SILENT = {"verdict": "silent", "quote": "", "why": "nothing on pots", "reminder": ""}
NO_EVIDENCE = {"needed_nodes": [], "skill_directs_there": False, "why": "none", "reminder": ""}
FAITHFUL = {"steps": [{"step": 0, "verdict": "faithful", "detail": ""}], "cause_step": None, "why": "w", "reminder": ""}


def judge(**changes: Any) -> ScriptedModel:
    return ScriptedModel(
        **{"diagnose__evidence": NO_EVIDENCE, "diagnose__tool_output": FAITHFUL, "diagnose__skill": SILENT, **changes}
    )


def archive(*answers: Answered, with_traces: bool = True) -> InMemoryArchive:
    trace = (view(0, "e1"), submit(1))
    return InMemoryArchive(
        [question(answer.question_id) for answer in answers],
        answers,
        {answer.question_id: trace for answer in answers} if with_traces else {},
        {"action-reasoning.md": SKILL, "default-strategy.md": SKILL},
        {"v": small_tree()},
    )


def answered(question_id: str, prediction: str = "A", stop_reason: str = "finished", **fields: Any) -> Answered:
    return Answered(question_id, prediction, prediction == "B", stop_reason, **fields)


def job(**changes: Any) -> DiagnoseJob:
    return DiagnoseJob(
        **{
            "workspace": "w", "run_id": "r", "dataset": "d", "question_ids": (), "skills_version": "v1",
            "prompts_version": "v1", "with_case_packs": True, **changes,
        }
    )  # fmt: skip


async def run(store: InMemoryArchive, model: ScriptedModel, asked: DiagnoseJob | None = None, workers: int = 4) -> Any:
    told: list[tuple[int, int]] = []

    async def tell(done: int, total: int) -> None:
        told.append((done, total))

    case = DiagnoseCase(AskModel(model, TEMPLATES, workers), Bounds())
    result = await DiagnoseRun(store, case, PackLimits(), workers, "templates").run(asked or job(), tell)
    return result, told


async def test_evo_3_only_wrong_answers_that_are_not_infra_are_diagnosed() -> None:
    store = archive(answered("q1"), answered("q2", "B"), answered("q3", "", "error"), answered("q4", "", "parse_error"))
    result, told = await run(store, judge())
    assert [each.question_id for each in result.diagnoses] == ["q1"]
    assert (result.right_count, result.wrong_count, result.infra_count) == (1, 1, 2)
    assert told == [(0, 1), (1, 1)]
    assert result.case_packs[0].statistics["infra"] == 2


async def test_evo_3_details_are_stored_for_right_and_wrong_answers() -> None:
    store = archive(answered("q1"), answered("q2", "B"))
    await run(store, judge())
    assert [finding.stage for finding in store.saved["q1"].findings][-1] == "skill"
    assert store.saved["q2"].findings == ()
    assert store.saved["q2"].metrics["format_compliance"] == 1.0


async def test_evo_3_a_missing_trace_is_rebuilt_from_the_steps() -> None:
    steps = '[{"step": 0, "tool": "view_node", "args": {"node_id": "v_e1"}, "output": "the onions", "thought": ""}]'
    model = judge()
    await run(archive(answered("q1", steps_json=steps), with_traces=False), model)
    assert "the onions" in model.prompts("diagnose.skill")[0]


async def test_evo_4_more_than_half_degraded_aborts_with_the_figures() -> None:
    def flaky(prompt: str) -> Any:
        return ModelUnavailable("no endpoint")

    store = archive(answered("q1"), answered("q2"))
    with pytest.raises(DegradedJudgement) as caught:
        await run(store, judge(diagnose__skill=flaky))
    assert caught.value.metadata["degraded"] == "2"
    assert caught.value.metadata["cases"] == "2"
    assert "no endpoint" in str(caught.value)
    assert set(store.saved) == {"q1", "q2"}


async def test_evo_4_exactly_half_degraded_goes_on() -> None:
    scripts = [ModelUnavailable("away"), SILENT]
    result, _ = await run(archive(answered("q1"), answered("q2")), judge(diagnose__skill=scripts), workers=1)
    assert result.degraded_count == 1
    assert [each.diagnosis.degraded for each in result.case_packs[0].failures] == [False, True]


async def test_evo_4_degraded_cases_can_be_tolerated_on_request() -> None:
    model = judge(diagnose__evidence=ModelUnavailable("away"))
    result, _ = await run(archive(answered("q1")), model, job(tolerate_degraded=True))
    assert result.degraded_count == 1


async def test_evo_3_known_fingerprints_are_left_out_and_depend_on_all_inputs() -> None:
    first, _ = await run(archive(answered("q1")), judge())
    known = frozenset({first.diagnoses[0].fingerprint})
    again = judge()
    second, _ = await run(archive(answered("q1")), again, job(known_fingerprints=known))
    assert (second.diagnoses, second.known_count, again.calls) == ((), 1, [])
    for changed in (job(known_fingerprints=known, prompts_version="v2"), job(known_fingerprints=known)):
        store = archive(answered("q1", "C" if changed.prompts_version == "v1" else "A"))
        assert len((await run(store, judge(), changed))[0].diagnoses) == 1


async def test_evo_3_judge_calls_are_bounded() -> None:
    model = judge()
    result, told = await run(archive(*(answered(f"q{i:02}") for i in range(30))), model, workers=3)
    assert model.most_in_flight <= 3
    assert [done for done, _ in told] == list(range(31))
    assert len(result.diagnoses) == 30


async def test_evo_3_a_prediction_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(UnknownRun, match="q7"):
        await run(archive(answered("q1")), judge(), job(question_ids=("q1", "q7")))
    with pytest.raises(UnknownRun):
        await run(archive(), judge())


@pytest.mark.parametrize("field", ["workspace", "run_id", "dataset", "skills_version", "prompts_version"])
async def test_qua_13_an_empty_field_is_named(field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await run(archive(answered("q1")), judge(), job(**{field: ""}))
    assert caught.value.field == field


def two_types() -> InMemoryArchive:
    answers = [answered("q1"), answered("q2", "B"), answered("q3"), answered("q4", "", "error")]
    types = {"q1": "Action Reasoning", "q2": "Action Reasoning", "q3": "Counting Problem", "q4": "Counting Problem"}
    return InMemoryArchive(
        [question(question_id, task_type=task_type) for question_id, task_type in types.items()],
        answers,
        {answer.question_id: (view(0, "e1"), submit(1)) for answer in answers},
        {"default-strategy.md": SKILL},
        {"v": small_tree()},
    )


async def test_evo_12_a_pooled_pack_holds_the_cases_of_all_types_when_it_is_asked_for() -> None:
    result, _ = await run(two_types(), judge(), job(with_pooled_pack=True))
    pooled = result.pooled_pack
    assert (pooled.task_type, pooled.target_file) == ("", "")
    assert [case.question_id for case in pooled.failures] == ["q1", "q3"]
    assert [case.question_id for case in pooled.successes] == ["q2"]
    assert pooled.unit_ids == ("q1", "q2", "q3")
    assert (pooled.statistics["answered"], pooled.statistics["infra"]) == (3, 1)
    message = result_message(result)
    assert [case.question_id for case in message.pooled_pack.failures] == ["q1", "q3"]


async def test_evo_12_without_being_asked_for_there_is_no_pooled_pack() -> None:
    result, _ = await run(two_types(), judge())
    assert result.pooled_pack is None
    assert not result_message(result).HasField("pooled_pack")
