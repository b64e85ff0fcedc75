"""Ordering edits by their expected effect when there are more than the budget allows (EVO-7)."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.evolver.domain.case_pack import CasePack
from services.evolver.domain.edits import Edit
from services.evolver.domain.errors import ModelUnavailable
from services.evolver.domain.proposal import read_order
from services.evolver.domain.targets import edit_text, statistics_text
from services.evolver.use_cases.ask_model import AskModel
from services.evolver.use_cases.ports import ModelRole, Origin


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order, best first, as indices into the edits; None when ranking failed and the given order stays."""

    order: tuple[int, ...] | None
    attempts: int


async def rank_edits(
    ask: AskModel, edits: Sequence[Edit], current_text: str, pack: CasePack, budget: int, origin: Origin
) -> Ranking:
    """Return the ranking of `edits`. A model that fails or answers badly costs the order, not the proposal."""
    numbered = "\n".join(f'<edit n="{number}">\n{edit_text(edit)}\n</edit>' for number, edit in enumerate(edits))
    values = {
        "skill": current_text,
        "edits": numbered,
        "statistics": statistics_text(pack.statistics),
        "budget": str(budget),
    }
    try:
        answer = await ask.ask(
            "evolve.rank", values, ModelRole.EVOLVE, origin, lambda found: read_order(found, len(edits))
        )
    except ModelUnavailable:
        return Ranking(None, 1)
    return Ranking(answer.value, answer.attempts)
