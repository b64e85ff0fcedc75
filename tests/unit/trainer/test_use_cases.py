"""Baseline, offline diagnosis, split, doctor and the meter, against the world in memory."""

import asyncio
import dataclasses
from typing import Any

import pytest

from services.trainer.config import TrainerConfig
from services.trainer.domain.budget import BudgetLimits
from services.trainer.domain.endpoints import Endpoint
from services.trainer.domain.errors import BudgetReached, EndpointDown, MissingResults, ServiceFailed, WorkspaceProblem
from services.trainer.domain.runs import CallSummary
from services.trainer.domain.split import SplitParameters
from services.trainer.use_cases.baseline import run_baseline
from services.trainer.use_cases.diagnose_baseline import diagnose_baseline
from services.trainer.use_cases.doctor import check_models, check_services, check_templates
from services.trainer.use_cases.freeze_split import freeze_split
from services.trainer.use_cases.rollback import roll_back
from services.trainer.use_cases.spend import Meter, within_budget
from tests.fakes.trainer_services import services_of
from tests.fakes.trainer_world import Silent, World, version

SETTINGS = TrainerConfig().training_settings()


def parameters(count: int) -> SplitParameters:
    return SplitParameters(count // 4, val_wrong_min=3)


async def test_trn_2_the_baseline_has_no_salt_and_a_second_call_goes_on() -> None:
    world = World()
    world.predictions.clear()
    first = await run_baseline(services_of(world), Silent(), SETTINGS, world.manifest)
    again = await run_baseline(services_of(world), Silent(), SETTINGS, world.manifest)
    assert (first.total, first.resumed, again.resumed) == (60, 0, 60)
    question = world.questions[0]
    expected = world.right(None, question, world.texts("skills", "v1"))
    assert world.predictions["baseline", question.question_id].correct == expected


async def test_trn_2_a_baseline_is_not_continued_in_another_way() -> None:
    world = World()
    world.predictions.clear()
    world.runs.clear()
    await run_baseline(services_of(world), Silent(), SETTINGS, world.manifest)
    other = dataclasses.replace(SETTINGS, max_steps=3, solver="direct")
    with pytest.raises(
        WorkspaceProblem, match=r"begun with solver tree, now direct; max_steps 20, now 3; .*--workspace"
    ):
        await run_baseline(services_of(world), Silent(), other, world.manifest)
    assert (await run_baseline(services_of(world), Silent(), SETTINGS, world.manifest)).resumed == 60


async def test_trn_2_questions_that_ended_in_a_fault_are_asked_again() -> None:
    world = World()
    world.predictions.clear()
    await run_baseline(services_of(world), Silent(), SETTINGS, world.manifest)
    key = ("baseline", world.questions[0].question_id)
    world.predictions[key] = dataclasses.replace(world.predictions[key], stop_reason="error")
    again = await run_baseline(services_of(world), Silent(), SETTINGS, world.manifest)
    assert (again.resumed, again.total, again.infra) == (59, 60, 0)


async def test_trn_13b_a_dead_endpoint_ends_the_baseline_with_its_cause() -> None:
    world = World()
    world.predictions.clear()
    world.endpoint_down = True
    with pytest.raises(EndpointDown, match=r"first 10 questions.*connection refused"):
        await run_baseline(services_of(world), Silent(), SETTINGS, world.manifest)
    assert len(world.predictions) == 10, "it went on asking a dead endpoint"


async def test_trn_3_done_rows_are_skipped_and_uncertain_ones_repeated_on_request() -> None:
    world = World()
    first = await diagnose_baseline(services_of(world), Silent(), world.manifest, retry_uncertain=False)
    again = await diagnose_baseline(services_of(world), Silent(), world.manifest, retry_uncertain=False)
    assert first.diagnosed > 0
    assert (again.diagnosed, again.known) == (0, first.diagnosed)
    doubtful = next(iter(world.diagnoses))
    world.diagnoses[doubtful] = dataclasses.replace(world.diagnoses[doubtful], tier="uncertain")
    retried = await diagnose_baseline(services_of(world), Silent(), world.manifest, retry_uncertain=True)
    assert retried.diagnosed == 1
    assert world.diagnoses[doubtful].tier == "T2"


async def test_trn_3_the_diagnosis_knows_the_step_limit_of_the_baseline_and_not_of_today() -> None:
    world = World()
    world.runs.clear()
    with pytest.raises(WorkspaceProblem, match="no baseline; run `videotree baseline` first"):
        await diagnose_baseline(services_of(world), Silent(), world.manifest, retry_uncertain=False)
    await run_baseline(services_of(world), Silent(), dataclasses.replace(SETTINGS, max_steps=7), world.manifest)
    await diagnose_baseline(services_of(world), Silent(), world.manifest, retry_uncertain=False)
    assert [job.max_steps for job in world.diagnosed] == [7]


async def test_trn_4_the_split_freezes_every_unit_in_one_pool() -> None:
    world = World()
    await diagnose_baseline(services_of(world), Silent(), world.manifest, retry_uncertain=False)
    frozen = await freeze_split(services_of(world), world.manifest, parameters, force=False, leave_out_infra=False)
    assert frozen.left_out == ()
    assert {unit.unit_id for unit in world.pools.units} == {question.unit_id for question in world.questions}
    assert len(world.pools.of("test")) == 15


async def test_trn_4_questions_without_a_result_stop_the_split_unless_left_out() -> None:
    world = World()
    key = ("baseline", world.questions[0].question_id)
    world.predictions[key] = dataclasses.replace(world.predictions[key], stop_reason="error")
    with pytest.raises(MissingResults, match="leave-out-infra"):
        await freeze_split(services_of(world), world.manifest, parameters, force=False, leave_out_infra=False)
    frozen = await freeze_split(services_of(world), world.manifest, parameters, force=False, leave_out_infra=True)
    assert frozen.left_out == (world.questions[0].question_id,)
    assert world.questions[0].unit_id not in {unit.unit_id for unit in world.pools.units}


async def test_trn_4_a_split_needs_the_whole_baseline() -> None:
    world = World()
    del world.predictions["baseline", world.questions[3].question_id]
    with pytest.raises(MissingResults, match="videotree baseline"):
        await freeze_split(services_of(world), world.manifest, parameters, force=False, leave_out_infra=True)


async def test_trn_14_each_failure_names_the_command_that_mends_it() -> None:
    world = World()
    world.endpoint_down = True

    async def nothing_serves(address: str) -> bool:
        return False

    findings = [
        *await check_services(nothing_serves, {"store": "127.0.0.1:1"}),
        *await check_models(services_of(world)),
        check_templates(lambda: {"agent.system.md": " "}),
    ]
    failed = [each for each in findings if each.status == "FAIL"]
    assert {"service store", "role agent", "role judge", "templates"} <= {each.name for each in failed}
    assert all(each.fix for each in failed)


@pytest.mark.parametrize(
    ("refusal", "mends"),
    [
        ("llm: HTTP 401: Incorrect API key provided", "export LLM_API_KEY=... (or AGENT_LLM_API_KEY)"),
        ("llm: HTTP 404: no such model", "curl http://x/models says what it serves; export LLM_MODEL=..."),
        ("connection refused", "start it (curl http://x/models must answer), or export LLM_BASE_URL=..."),
    ],
)
async def test_trn_14_what_mends_an_endpoint_depends_on_how_it_failed(refusal: str, mends: str) -> None:
    class Refusing:
        async def endpoints(self) -> tuple[Endpoint, ...]:
            return await services.models.endpoints()

        async def probe(self, role: str) -> None:
            raise ServiceFailed("inference", "FAILED_PRECONDITION", refusal)

    services = services_of(World())
    findings = await check_models(dataclasses.replace(services, models=Refusing()))
    agent = next(each for each in findings if each.name == "role agent")
    assert agent.status == "FAIL"
    assert agent.fix.startswith(mends)
    assert agent.fix.endswith(", then restart the inference service")


async def test_trn_14_a_role_is_checked_by_a_real_call() -> None:
    world = World()
    await check_models(services_of(world))
    assert "models.probe" in world.calls


class Ledger:
    """Calls that grow with every look."""

    def __init__(self) -> None:
        self.looks = 0

    async def call_summaries(self, workspace: str, run_id: str) -> list[CallSummary]:
        self.looks += 1
        calls = 1000 + 10 * self.looks
        return [CallSummary("agent", "OK", "miss", calls, 0, 0, 0), CallSummary("agent", "OK", "hit", 9999, 0, 0, 0)]


async def test_trn_12_only_what_this_command_spent_counts_and_hits_are_free() -> None:
    meter = Meter(Ledger(), "w", "r", lambda: 0.0)  # type: ignore[arg-type]
    assert (await meter.usage()).calls == 0
    assert (await meter.usage()).calls == 10


async def test_trn_12_work_in_flight_is_cancelled_when_a_limit_is_used_up() -> None:
    cancelled = asyncio.Event()

    async def endless(check: Any) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    meter = Meter(Ledger(), "w", "r", lambda: 0.0)  # type: ignore[arg-type]
    with pytest.raises(BudgetReached, match="--max-calls is 20"):
        await within_budget(BudgetLimits(max_calls=20), meter, endless, poll_seconds=0.01)
    assert cancelled.is_set()


async def test_trn_12_an_error_of_the_work_comes_through() -> None:
    async def failing(check: Any) -> None:
        await check()
        raise MissingResults("things", ["a"], "do it")

    meter = Meter(Ledger(), "w", "r", lambda: 0.0)  # type: ignore[arg-type]
    with pytest.raises(MissingResults):
        await within_budget(BudgetLimits(max_calls=20_000), meter, failing, poll_seconds=0.01)


@pytest.mark.parametrize("kind", ["skills", "prompts"])
async def test_trn_13_rollback_publishes_the_old_texts_on_top(kind: str) -> None:
    world = World()
    published: list[Any] = []

    class Versions:
        async def get(self, workspace: str, kind: str, name: str) -> Any:
            texts = {"v1": {"a.md": "old", "gone.md": "x"}, "v2": {"a.md": "new", "more.md": "y"}}[name]
            return version(kind, name, "", texts)

        async def publish(self, workspace: str, change: Any) -> Any:
            published.append(change)
            return await self.get(workspace, kind, "v1")

    in_force: dict[str, str] = {}

    class Workspaces:
        async def get(self, name: str) -> Any:
            current = dataclasses.replace(world.manifest.current, **{kind: "v2"})
            return dataclasses.replace(world.manifest, current=current), ""

        async def set_current(self, name: str, current: Any, etag: str) -> Any:
            in_force.update(current)
            return world.manifest

    services = dataclasses.replace(services_of(world), versions=Versions(), workspaces=Workspaces())
    await roll_back(services, "lab", "v1", kind)
    change = published[0]
    assert (change.kind, in_force) == (kind, {kind: "v1"})
    assert (dict(change.overrides), change.removed, change.parent) == (
        {"a.md": "old", "gone.md": "x"},
        ("more.md",),
        "v2",
    )
