"""GAT-13 in a training on the real store and the real gate: rolled back, confirmed, kept, or still on probation,

by the evaluations at the end of the accept's epoch or by the pairs that later epochs add.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from services.trainer.domain.trainer_state import TrainerState, state_from_json
from services.trainer.domain.versions import Version
from tests.builders.probation_house import NEW, RUN, WORKSPACE, House, StoreKilled, probation_house

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# Read in the declared order, the seventh loss rolls back, the eighth win confirms and the twelfth unit keeps; read as a
# whole, by unit id or as they arrived, each of the first three would end otherwise. The evaluations decide these. Later
# and Longer need the second epoch: the former loses its seventh unit there, before one that it wins, and the latter has
# its twelfth. Short has six units in two epochs, which decide nothing.
PLAN = {
    "Harmful": "LBLLLNLLLWWWWWW",
    "Harmless": "WLBNWLBNWLBNLLLLLLLLLLLL",
    "Helpful": "WWBWWWWWWLLLLLLLLL",
    "Later": "LBNLLNLB|LLLWWWWW",
    "Longer": "WLBNWLL|NLBWNLL",
    "Short": "LLL",
}
LATER_DRAW, LONGER_DRAW = f"{RUN}_e1_val_probation_later", f"{RUN}_e1_val_probation_longer"


async def versions(house: House) -> list[Version]:
    listed = await house.services.versions.all(WORKSPACE, "skills")
    return [await house.services.versions.get(WORKSPACE, "skills", each.version) for each in listed]


async def state(house: House) -> TrainerState:
    saved = await house.services.ledger.load_checkpoint(WORKSPACE, RUN, None)
    return state_from_json(saved.trainer_state_json)


async def decided(house: House) -> dict[str, Any]:
    """Everything that the training decided, as the store has it."""
    ledger, manifest = house.services.ledger, (await house.services.workspaces.get(WORKSPACE))[0]
    rows = await ledger.step_reports(WORKSPACE, RUN)
    records = await ledger.evolution_records(WORKSPACE, RUN)
    return {
        "current": manifest.current.skills,
        "versions": [
            (v.version, v.parent, v.source, v.trigger_run, v.description, v.texts) for v in await versions(house)
        ],
        "gates": [(r.epoch, r.step, r.report.task_type, r.report.gate_action, r.report.accepted_version) for r in rows],
        "verdicts": {r.report.task_type: json.loads(r.report.verdict_json) for r in rows if r.report.verdict_json},
        "records": [(r.epoch, r.step, r.record) for r in records],
        "metrics": [(m.epoch, m.version_kind, m.hard) for m in await ledger.dual_metrics(WORKSPACE, RUN)],
        "state": await state(house),
        "draws": {
            run_id: [
                (each.question_id, each.correct) for each in await house.services.runs.predictions(WORKSPACE, run_id)
            ]
            for run_id in (LATER_DRAW, LONGER_DRAW)
        },
    }


@dataclass(frozen=True)
class Trained:
    """A training that nothing interrupted."""

    notes: list[str]
    versions: list[Version]
    decided: dict[str, Any]
    refused: Mapping[str, tuple[str, ...]]


async def whole_training(data: Path) -> Trained:
    async with probation_house(data, PLAN) as house:
        notes = await house.train()
        return Trained(notes, await versions(house), await decided(house), house.evolver.refused)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return asyncio.run(whole_training(tmp_path_factory.mktemp("trained") / "data"))


def test_gat_13_a_provisional_accept_is_rolled_back_confirmed_or_kept_by_its_later_pairs(trained: Trained) -> None:
    result, all_versions = trained.decided, trained.versions
    gates = {(epoch, kind): (action, name) for epoch, _, kind, action, name in result["gates"]}
    assert [gates[0, kind] for kind in PLAN] == [("ACCEPT_PROVISIONAL", f"v{number}") for number in range(2, 8)]
    parsed = result["verdicts"]["Harmful"]
    assert (parsed["cand_parse_errors"], parsed["cand_questions"], parsed["max_parse_error_share"]) == (0, 5, 0.1)
    assert [note for note in trained.notes if note.startswith("probation")][:3] == [
        "probation of Harmful: roll_back, W=0 L=7 after 9 units: E=16 against it reaches e_rollback",
        "probation of Harmless: kept, W=3 L=3 after 12 units: 12 units without either bar",
        "probation of Helpful: confirmed, W=8 L=0 after 9 units: E=28.44 for it reaches e_confirm",
    ]
    first, last = all_versions[7:]
    assert (first.version, first.parent, first.source) == ("v8", "v7", "rollback")
    assert first.trigger_run == f"{RUN}_e0_val_final"
    assert first.texts == {**all_versions[6].texts, "harmful.md": all_versions[0].texts["harmful.md"]}
    rolled_back = [record for epoch, _, record in result["records"] if epoch == 0 and record.target == "harmful.md"]
    assert json.loads(rolled_back[-1].rejections_json)[0] == "rolled back: W=0, L=7 over 9 later pairs"

    assert (last.version, last.parent, last.source, result["current"]) == ("v9", "v8", "rollback", "v9")
    assert last.texts == {**first.texts, "later.md": all_versions[0].texts["later.md"]}
    kept = ["harmless.md", "helpful.md", "longer.md", "short.md"]
    assert [name for name, text in last.texts.items() if NEW in text] == kept
    assert list(result["state"].probation) == ["Short"], "six losses are not enough"
    assert [pair[1:] for pair in result["state"].probation["Short"].pairs] == [(True, False)] * 6
    assert gates[1, "Harmful"][0] == "SKIP_REPEATED", "what was rolled back is a refused proposal"
    assert trained.refused["Harmful"] == ("ROLLED_BACK: W=0 L=7 after 9 units: E=16 against it reaches e_rollback",)


def test_gat_13_a_later_epoch_adds_pairs_that_decide_what_the_first_left_open(trained: Trained) -> None:
    result = trained.decided
    assert [note for note in trained.notes if note.startswith("probation")][3:] == [
        "probation of Later: roll_back, W=0 L=7 after 11 units: E=16 against it reaches e_rollback",
        "probation of Longer: kept, W=3 L=4 after 12 units: 12 units without either bar",
    ]
    assert trained.versions[-1].trigger_run == f"{RUN}_e1_val_final"
    assert result["state"].rejected["Later"][0].reason.startswith("ROLLED_BACK: W=0 L=7 after 11 units")
    assert sorted(result["draws"][LATER_DRAW], reverse=True) == [
        ("later-91-q", True),
        ("later-90-q", True),
        ("later-89-q", True),
        ("later-88-q", False),
    ], "four are missing to twelve, and ids fall along the declared order"
    assert {question for question, _ in result["draws"][LONGER_DRAW]} == {f"longer-{n}-q" for n in range(87, 92)}
    reviews = {(epoch, record.target): json.loads(record.rejections_json) for epoch, _, record in result["records"]}
    assert reviews[1, "later.md"] == [
        "rolled back: W=0, L=7 over 11 later pairs",
        f"pairs of {RUN}_e1_val_final against {LATER_DRAW}: later-91 lost, later-90 lost, later-89 lost, later-88 won",
    ]
    assert reviews[1, "longer.md"][0] == "kept: W=3, L=4 over 12 later pairs"
    assert reviews[1, "short.md"][0] == "still on probation: W=0, L=6 over 6 later pairs"


Death = Callable[[House], House]


@pytest.mark.parametrize(
    "death",
    [
        lambda house: house.killing("commit_step", 0, after=True),
        lambda house: house.killing("commit_epoch", 0, after=False),
        lambda house: house.killing("commit_epoch", 0, after=True),
        lambda house: house.killing("commit_step", 1, after=False),
        lambda house: house.killing_in_answers(LATER_DRAW, 2),
        lambda house: house.killing_in_answers(LONGER_DRAW, 5),
        lambda house: house.killing("commit_epoch", 1, after=False),
        lambda house: house.killing("commit_epoch", 1, after=True),
    ],
    ids=[
        "on probation",
        "before the roll-back",
        "after the roll-back",
        "in the next step",
        "while a predecessor answers",
        "after the last predecessor's answer",
        "before the later roll-back",
        "after the later roll-back",
    ],
)
async def test_gat_13_a_killed_store_neither_forgets_nor_repeats_a_decision(
    tmp_path: Path, death: Death, trained: Trained
) -> None:
    async with probation_house(tmp_path / "data", PLAN) as house:
        with pytest.raises(StoreKilled):
            await death(house).train()
    async with probation_house(tmp_path / "data", PLAN) as house:
        await house.train(resume=True)
        assert await decided(house) == trained.decided
        assert [version.source for version in await versions(house)].count("rollback") == 2
