"""Probation over the epochs of a training (GAT-13), in the world of tests/fakes/trainer_world.py."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from services.gate.domain.evidence import Mixture
from services.gate.domain.probation import Pair, ProbationParameters
from services.gate.domain.probation import review_probation as rule
from services.gate.domain.unit_result import ArmResult
from services.trainer.adapters.report_page import render_report
from services.trainer.config import TrainerConfig
from services.trainer.domain.answering import AnswerJob
from services.trainer.domain.errors import BudgetReached, EndpointDown
from services.trainer.domain.gate_round import ProbationPair, ProbationReview
from services.trainer.domain.trainer_state import Probation, TrainerState, state_from_json, with_probation
from services.trainer.use_cases.evaluate import evaluate
from services.trainer.use_cases.gather_report import gather_report
from services.trainer.use_cases.open_run import gather_run, resume_run, start_run
from services.trainer.use_cases.plan_run import plan_run
from services.trainer.use_cases.probation_pairs import EpochEnd
from services.trainer.use_cases.review_probation import ProbationResult, review_probations
from services.trainer.use_cases.train import train
from services.trainer.use_cases.training_run import TrainingRun
from tests.builders.trainings import SMALL, no_limit
from tests.fakes.trainer_services import services_of
from tests.fakes.trainer_world import TYPES, Crash, Silent, World, outcome_of

TYPE, FILE = TYPES[0], "action-reasoning.md"
DRAW = "run-1_e1_val_probation_action-reasoning"
UNITS = [f"action-reasoning-{number:02}" for number in (1, 2, 6, 7, 11, 12, 16, 17)]
"""The type's val units in the order of the split."""


class RealReviews:
    """The fake's gate with the real rule of a probation."""

    def __init__(self, gate: Any) -> None:
        self._gate = gate

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gate, name)

    async def review_probation(self, pairs: Sequence[ProbationPair], *bars: Any) -> ProbationReview:
        e_rollback, probation_units, parameters = bars
        results = [ArmResult.WRONG, ArmResult.RIGHT]
        read = [Pair(each.unit_id, results[each.predecessor_correct], results[each.current_correct]) for each in pairs]
        made = rule(
            read, ProbationParameters(Mixture(parameters.mixture), e_rollback, parameters.e_confirm, probation_units)
        )
        return ProbationReview(made.decision.value.lower(), made.reason, made.wins, made.losses, made.n_used)


class Scripted:
    """The agent: each question of `wrong` and `faulty` by run id and question, the others right."""

    def __init__(self, agent: Any, wrong: set[tuple[str, str]], faulty: set[tuple[str, str]]) -> None:
        self._agent, self._wrong, self._faulty = agent, wrong, faulty
        self.jobs: list[AnswerJob] = []

    async def answer(self, job: AnswerJob) -> Any:
        self.jobs.append(job)
        async for answer in self._agent.answer(job):
            key = (job.run_id, answer.question_id)
            reason = "error" if key in self._faulty else "finished"
            yield dataclasses.replace(answer, correct=key not in self._wrong, stop_reason=reason)


async def run_in(world: World, **settings: Any) -> TrainingRun:
    services = services_of(world)
    services = dataclasses.replace(services, gate=RealReviews(services.gate))  # type: ignore[arg-type]
    config = TrainerConfig(**{**SMALL, **settings})
    return await gather_run(services, Silent(), config.training_settings(), "lab", "run-1")


class Reviewed:
    """One review at the end of epoch 1 of a file with `pairs` so far; `wrong` and `faulty` as `Scripted` has them."""

    def __init__(self, pairs: str = "", text: str = "new\n", **settings: Any) -> None:
        outcomes = {"W": (False, True), "L": (True, False), "N": (False, False)}
        self.state = with_probation(
            TrainerState(),
            Probation(
                TYPE, FILE, "old\n", "new\n", tuple((f"earlier-{n}", *outcomes[c]) for n, c in enumerate(pairs)), "f"
            ),
        )
        self.settings, self.text = settings, text
        self.wrong: set[tuple[str, str]] = set()
        self.faulty: set[tuple[str, str]] = set()
        self.jobs: list[AnswerJob] = []
        self.notes: list[str] = []

    async def __call__(self, require_room: Any = no_limit) -> ProbationResult:
        world = World()
        world.versions["skills"][0] = dataclasses.replace(
            world.versions["skills"][0],
            files=tuple(
                dataclasses.replace(each, text=self.text) if each.name == FILE else each
                for each in world.versions["skills"][0].files
            ),
        )
        run = await run_in(world, **self.settings)
        agent = Scripted(run.services.agent, self.wrong, self.faulty)
        run = dataclasses.replace(run, services=dataclasses.replace(run.services, agent=agent))  # type: ignore[arg-type]
        skills = await run.services.versions.get("lab", "skills", "v1")
        final = await evaluate(run, 1, "val", "final", "v1", "v1", {})
        agent.jobs.clear()
        self.jobs = agent.jobs
        try:
            return await review_probations(run, self.state, EpochEnd(1, skills, "v1", final), require_room)
        finally:
            self.notes = run.progress.notes  # type: ignore[attr-defined]


async def test_gat_13_the_predecessor_answers_the_missing_units_in_the_declared_order_under_a_salt_of_their_own() -> (
    None
):
    reviewed = Reviewed("N" * 25)
    result = await reviewed()
    (job,) = reviewed.jobs
    assert job.question_ids == tuple(UNITS[:5]), "30 less the 25 it had"
    assert (job.run_id, job.salt) == (DRAW, DRAW)
    assert (job.skills_version, job.prompts_version, job.overrides) == ("v1", "v1", {FILE: "old\n"})
    assert result.state.probation == {}
    assert reviewed.notes == [f"probation of {TYPE}: kept, W=0 L=0 after 30 units: 30 units without either bar"]


async def test_gat_13_units_without_a_result_on_either_side_are_made_up_for_in_a_later_epoch() -> None:
    reviewed = Reviewed("N" * 26)
    reviewed.faulty = {("run-1_e1_val_final", UNITS[0]), (DRAW, UNITS[2])}
    result = await reviewed()
    assert reviewed.jobs[0].question_ids == tuple(UNITS[1:5]), "what the file did not answer is not asked either"
    later = result.state.probation[TYPE].pairs[26:]
    assert later == tuple((unit, True, True) for unit in (UNITS[1], UNITS[3], UNITS[4]))
    (record,) = result.records
    assert (record.status, record.target, record.base_version) == ("skipped", FILE, "v1")
    assert record.rejections_json == (
        '["still on probation: W=0, L=0 over 29 later pairs", '
        f'"pairs of run-1_e1_val_final against {DRAW}: {UNITS[1]} both right, {UNITS[3]} both right, '
        f'{UNITS[4]} both right"]'
    )


async def test_gat_13_a_later_epochs_losses_roll_back_and_what_follows_them_is_not_counted() -> None:
    reviewed = Reviewed("LNLLNL")
    reviewed.wrong = {("run-1_e1_val_final", unit) for unit in UNITS[:4]} | {(DRAW, unit) for unit in UNITS[4:]}
    result = await reviewed()
    assert result.restored == {FILE: "old\n"}
    assert (
        result.state.rejected[TYPE][0].reason
        == "ROLLED_BACK: W=0 L=7 after 9 units: E=16 against it reaches e_rollback"
    )
    assert result.records[0].status == "rejected"
    assert "rolled back: W=0, L=7 over 9 later pairs" in result.records[0].rejections_json


async def test_gat_13_a_slow_update_of_the_file_goes_along_on_both_sides_and_survives_a_roll_back() -> None:
    momentum = "\n<!-- MOMENTUM_START -->\n- slower\n<!-- MOMENTUM_END -->\n"
    reviewed = Reviewed("LLLLLL", text=f"new\n{momentum}")
    reviewed.wrong = {("run-1_e1_val_final", unit) for unit in UNITS}
    result = await reviewed()
    assert reviewed.jobs[0].overrides == {FILE: f"old\n{momentum}"}
    assert result.restored == {FILE: f"old\n{momentum}"}


async def test_gat_13_a_file_that_something_else_changed_is_on_probation_no_more_and_costs_nothing() -> None:
    reviewed = Reviewed("LLLLLL", text="another's\n")
    result = await reviewed()
    assert (result.state.probation, result.restored, result.records, reviewed.jobs) == ({}, {}, (), [])
    assert reviewed.notes == [f"probation of {TYPE}: ended, {FILE} was changed since its accept"]


async def test_trn_12_a_budget_is_asked_before_the_predecessor_answers() -> None:
    async def used_up() -> None:
        raise BudgetReached("no calls left")

    reviewed = Reviewed()
    with pytest.raises(BudgetReached):
        await reviewed(used_up)
    assert reviewed.jobs == []


@pytest.mark.parametrize(("missing", "stops"), [(2, False), (12, True)])
async def test_trn_13b_a_draw_that_fails_stops_the_run_only_when_it_is_long_enough_to_tell(
    missing: int, stops: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.trainer.use_cases.probation_pairs.LOST_AT_START", 8)
    reviewed = Reviewed("N" * (30 - missing))
    reviewed.faulty = {(DRAW, unit) for unit in UNITS}
    if stops:
        with pytest.raises(EndpointDown):
            await reviewed()
        return
    result = await reviewed()
    assert len(result.state.probation[TYPE].pairs) == 28
    assert "no pairs of this epoch, all of the first 2 questions failed" in reviewed.notes[0]


async def test_trn_12_the_plan_counts_a_probation_of_each_type_at_each_epochs_end() -> None:
    async def planned(**settings: Any) -> int:
        plan, _ = await plan_run(await run_in(World(), **settings), "baseline")
        return {work.name: work.questions for work in plan.work}.get("probation", 0)

    assert await planned() == 2 * 3 * 8, "two epochs, three types of eight val units"
    assert await planned(probation_units=5) == 2 * 3 * 5
    assert await planned(targets=("system",), prompt_every=1) == 0


LONG: dict[str, Any] = {
    "epochs": 3,
    "batch_size": 8,
    "slow_update": True,
    "early_stop_patience": 0,
    "probation_units": 18,
}


async def trained(world: World, *, resume: bool = False) -> list[AnswerJob]:
    run = await run_in(world, **LONG, trainable_min_units=4, eval_min_per_class=1)
    jobs: list[AnswerJob] = []

    class Noted:
        def answer(self, job: AnswerJob) -> Any:
            jobs.append(job)
            return run.services.agent.answer(job)

    noted = dataclasses.replace(run, services=dataclasses.replace(run.services, agent=Noted()))  # type: ignore[arg-type]
    await train(noted, await (resume_run(noted, "") if resume else start_run(noted, "")), no_limit)
    return jobs


def on_probation() -> World:
    """Five or six val units a type. The slow update of epoch 1 rewrites MOMENTUM, as the real one does."""
    world = World(units_per_type=13)
    world.proposals = dict.fromkeys(TYPES[:2], "GOOD")
    world.provisional = True
    world.slow_text = "\n<!-- MOMENTUM_START -->\n- slower\n<!-- MOMENTUM_END -->\n"
    return world


async def test_gat_13_each_epoch_draws_afresh_until_the_probation_ends_and_the_page_shows_every_review() -> None:
    world = on_probation()
    jobs = [job for job in await trained(world) if "_probation_" in job.run_id]
    assert len({job.salt for job in jobs}) == len(jobs) > 1
    assert {job.salt for job in jobs}.isdisjoint({"gate-base", *(f"run-1:e{epoch}" for epoch in range(3))})
    report = await gather_report(services_of(world), "lab", "run-1")
    reviews = [row for row in report.edits if row.step == 2]
    assert len(reviews) > len(jobs), "the first review needs no draw"
    page = render_report(report)
    section = page[page.index("<h2>Probation</h2>") : page.index("<h2>Diagnoses</h2>")]
    assert section.count("against run-1_e") == len(reviews)
    for job in jobs:
        assert f"against {job.run_id}: " in section


@pytest.mark.parametrize("after_effect", [False, True])
async def test_gat_13_killed_at_any_call_and_resumed_the_probations_end_the_same(after_effect: bool) -> None:
    undisturbed = on_probation()
    await trained(undisturbed)
    expected = outcome_of(undisturbed)
    first = undisturbed.calls.index("ledger.commit_epoch", undisturbed.calls.index("ledger.commit_step")) + 1
    assert state_from_json(undisturbed.epochs[0].checkpoint.trainer_state_json).probation
    for crash_at in range(first, len(undisturbed.calls) + 1):
        world = on_probation()
        world.crash_at, world.crash_after_effect = crash_at, after_effect
        with pytest.raises((Crash, BaseExceptionGroup)):
            await trained(world)
        world.crash_at = None
        await trained(world, resume=True)
        assert outcome_of(world) == expected, f"killed at call {crash_at}: {world.calls[crash_at - 1]}"
