"""GAT-9 end to end: an unchanged skill is its own candidate in 200 gates through real services, over `sim-dice`.

Each cold round has a text of its own in every skill: then the cache knows no base result, and as the simulated
model's draw depends on the text, the round's base is a fresh one. In the warm rounds the base is cached, so that the
candidate's latency, which depends on being right, decides alone when a pair is complete.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

import pytest
from videotree.gate.v1 import round_pb2, verdict_pb2
from videotree.store.v1 import version_pb2, version_service_pb2

from services.gate.domain.power import exit_probabilities
from services.gate.domain.simulation import FlipRates
from services.gate.domain.verdict import Decision, GateParameters
from services.skills import slug
from tests.builders.whole_house import Content, House, Outcomes, numbered_questions, round_request, whole_house
from tests.fakes.in_memory_answering import skill

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TYPES = [f"Kind {letter}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXY"]
QUESTIONS = numbered_questions(TYPES, 40)
COLD_ROUNDS, WARM_ROUNDS = 8, 2
WORLD = """
seed = 3
[latency]
median_ms = 8
right_factor = 3.0
[dice]
default = 0.5
[[dice.effects]]
phrase = "look twice"
shift = 0.4
"""
ACCEPTS = {verdict_pb2.DECISION_ACCEPT_CONFIRMED, verdict_pb2.DECISION_ACCEPT_PROVISIONAL}


@dataclass(frozen=True)
class Rounds:
    """Outcomes of each round: unchanged skills without and with cached bases, and better ones."""

    cold: list[Outcomes]
    warm: list[Outcomes]
    better: Outcomes


def skills_of(edition: int, more: str = "") -> dict[str, str]:
    """The skill of every type."""
    return {kind: skill(slug(kind), kind, f"Look. This is edition {edition}.{more}") for kind in TYPES}


def files_of(edition: int) -> dict[str, str]:
    return {f"{slug(kind)}.md": text for kind, text in skills_of(edition).items()}


async def publish(up: House, edition: int) -> None:
    change = version_pb2.VersionChange(
        kind=version_pb2.VERSION_KIND_SKILLS,
        parent=version_of(edition - 1),
        overrides=files_of(edition),
        source=version_pb2.VERSION_SOURCE_MANUAL,
    )
    request = version_service_pb2.PublishVersionRequest(workspace="w", change=change)
    published = await up.store.versions.PublishVersion(request)
    assert published.version.version == version_of(edition)


def version_of(edition: int) -> str:
    return f"v{edition + 1}"


async def all_rounds(root: Path) -> Rounds:
    skills = {"default-strategy.md": skill("default-strategy", "default", "Look."), **files_of(0)}
    async with whole_house(root, Content(WORLD, QUESTIONS, skills)) as up:
        cold = []
        for edition in range(COLD_ROUNDS):
            if edition:
                await publish(up, edition)
            cold.append(await a_round(up, edition, step=edition))
        warm = [await a_round(up, edition, step=COLD_ROUNDS + edition) for edition in range(WARM_ROUNDS)]
        better = await a_round(up, COLD_ROUNDS - 1, COLD_ROUNDS + WARM_ROUNDS, TYPES[:10], " Look twice.")
        return Rounds(cold, warm, better)


async def a_round(up: House, edition: int, step: int, types: Sequence[str] = TYPES, more: str = "") -> Outcomes:
    texts = skills_of(edition, more)
    candidates = {kind: texts[kind] for kind in types}
    return await up.outcomes(round_request(QUESTIONS, candidates, step, version_of(edition)))


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Rounds:
    return asyncio.run(all_rounds(tmp_path_factory.mktemp("house")))


def gates(rounds: Iterable[Outcomes]) -> list[round_pb2.GateOutcome]:
    return [outcome for one in rounds for outcome in one.values()]


def accepted(outcomes: Iterable[round_pb2.GateOutcome]) -> int:
    return sum(outcome.verdict.decision in ACCEPTS for outcome in outcomes)


def test_gat_9_of_200_gates_of_an_unchanged_skill_at_most_one_in_twenty_accepts(rounds: Rounds) -> None:
    unchanged = gates(rounds.cold)
    assert len(unchanged) == 200
    assert accepted(unchanged) <= 10
    for outcome in unchanged:
        assert outcome.base_skill_sha256 == outcome.cand_skill_sha256
        assert (outcome.cache_hits, outcome.excluded) == (0, 0)


def test_gat_9_nor_where_cached_bases_answer_at_once(rounds: Rounds) -> None:
    unchanged = gates(rounds.warm)
    assert len(unchanged) == 50
    assert accepted(unchanged) <= 2
    assert all(outcome.cache_hits > 0 for outcome in unchanged)


def test_gat_9_the_200_gates_are_draws_of_their_own(rounds: Rounds) -> None:
    """Half of the answers are right, and whether two rounds agree on a unit is a fair coin, in both arms."""
    for arm in ("base", "cand"):
        seen = [results_of(one, arm) for one in rounds.cold]
        right = [correct for one in seen for correct in one.values()]
        assert sum(right) / len(right) == pytest.approx(0.5, abs=4 * 0.5 / len(right) ** 0.5)
        equal = [one[unit] == other[unit] for one, other in itertools.pairwise(seen) for unit in one if unit in other]
        assert len(equal) > 1000
        assert sum(equal) / len(equal) == pytest.approx(0.5, abs=4 * 0.5 / len(equal) ** 0.5)


def results_of(outcomes: Outcomes, arm: str) -> dict[str, bool]:
    return {row.unit_id: getattr(row, f"{arm}_correct") for outcome in outcomes.values() for row in outcome.evidence}


def test_gat_14_the_200_gates_accept_and_cost_what_exact_calculation_says(rounds: Rounds) -> None:
    exits = exit_probabilities(FlipRates(win=0.25, loss=0.25), 40, GateParameters())
    chance = exits.probability[Decision.ACCEPT_CONFIRMED] + exits.probability[Decision.ACCEPT_PROVISIONAL]
    assert chance == pytest.approx(0.0164, abs=1e-4)
    unchanged = gates(rounds.cold)
    assert accepted(unchanged) == pytest.approx(200 * chance, abs=4 * (200 * chance * (1 - chance)) ** 0.5)
    used = [outcome.n_used for outcome in unchanged]
    assert mean(used) == pytest.approx(exits.mean_units, abs=4 * stdev(used) / 200**0.5)


def test_gat_9_the_same_house_accepts_a_better_skill_of_most_types(rounds: Rounds) -> None:
    """0.9 against 0.5: 95% of gates by exact calculation."""
    assert len(rounds.better) == 10
    assert accepted(rounds.better.values()) >= 8
