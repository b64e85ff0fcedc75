"""The prefix rule: counters advance only along the longest resolved prefix of the ladder, never by arrival.

A cached base answers at once and a candidate does not; if its latency depends on being right, the early arrivals are
a biased sample and a test on them accepts noise. So a unit is counted when every unit before it is resolved. The
state after a set of results is a function of that set alone: arrival order cannot be seen in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from services.gate.domain.errors import AllUnitsExcluded
from services.gate.domain.evidence import Evidence
from services.gate.domain.ladder import require_distinct
from services.gate.domain.pessimistic import hidden_loss, reread
from services.gate.domain.stability import DEFAULT_MAX_SHARE, Stability
from services.gate.domain.unit_result import NO_QUESTIONS, Arm, ArmResult, ParseCount
from services.gate.domain.verdict import Decision, ExitRule, GateParameters, Verdict, make_verdict

_PARSED, _UNPARSABLE = ParseCount(0, 1), ParseCount(1, 1)


class EvidenceRow(NamedTuple):
    """One unit of the consumed prefix, with the counters after it; an excluded unit leaves them unchanged.

    A named tuple: a long ladder makes one a unit, and a frozen dataclass takes more than twice as long to make.
    """

    rank: int
    unit_id: str
    base: ArmResult
    cand: ArmResult
    wins: int
    losses: int
    log_e: float

    @property
    def excluded(self) -> bool:
        """Whether the unit is missing data in an arm and so counts nowhere."""
        return self.base.is_infra or self.cand.is_infra


class Prefix:
    """The ladder of one type being consumed. Not safe for concurrent use; knows no clock and no I/O.

    `max_parse_error_share`: of the candidate's questions in the consumed prefix, the share of parse errors that an
    accept may have.
    """

    def __init__(
        self,
        task_type: str,
        unit_ids: Sequence[str],
        parameters: GateParameters,
        max_parse_error_share: float = DEFAULT_MAX_SHARE,
    ) -> None:
        self.task_type = task_type
        self.unit_ids = tuple(unit_ids)
        self._rank_of = {unit_id: rank for rank, unit_id in enumerate(self.unit_ids)}
        require_distinct(task_type, self.unit_ids)
        self._bases: list[ArmResult | None] = [None] * len(self.unit_ids)
        self._cands: list[ArmResult | None] = [None] * len(self.unit_ids)
        self._parse_counts = [NO_QUESTIONS] * len(self.unit_ids)
        self._rule = ExitRule(parameters)
        self._evidence = Evidence(parameters.mixture)
        self._decision = Decision.CONTINUE
        self._rows: list[EvidenceRow] = []
        self._excluded = 0
        self._hidden_losses = self._parse_errors = self._cand_questions = 0
        self._max_parse_error_share = max_parse_error_share

    @property
    def position(self) -> int:
        """The rank that is consumed next: units before it are counted or excluded."""
        return len(self._rows)

    @property
    def excluded(self) -> int:
        """Units of the consumed prefix that are missing data."""
        return self._excluded

    @property
    def n_used(self) -> int:
        """Units counted."""
        return len(self._rows) - self._excluded

    @property
    def frozen(self) -> bool:
        """Whether a terminal verdict stands; nothing is counted any more."""
        return self._decision.terminal

    @property
    def rows(self) -> tuple[EvidenceRow, ...]:
        """The consumed prefix."""
        return tuple(self._rows)

    @property
    def verdict(self) -> Verdict:
        """Where the type stands. Raises AllUnitsExcluded when the whole ladder is missing data."""
        if not self.frozen and self.n_used == 0 and self._excluded == len(self.unit_ids):
            raise AllUnitsExcluded(self.task_type, self._excluded)
        remaining = len(self.unit_ids) - len(self._rows)
        flips = self._evidence
        return make_verdict(
            self._decision,
            flips.log_e,
            flips.wins,
            flips.losses,
            self.n_used,
            remaining,
            self._stability(),
            self._rule.parameters,
        )

    def result(self, rank: int, arm: Arm) -> ArmResult | None:
        """What that arm of that unit came to, consumed or not; None while unresolved."""
        return self._of(arm)[rank]

    def resolve(
        self, unit_id: str, arm: Arm, result: ArmResult, parse_count: ParseCount | None = None
    ) -> Sequence[EvidenceRow]:
        """Record a result and return the units that it made consumable, in order.

        `parse_count`: of the arm's questions; None for a unit of one question, whose result tells it. A second,
        different result for the same arm raises ValueError: each arm of a unit is run once.
        """
        rank, results = self._rank_of[unit_id], self._of(arm)
        known = results[rank]
        if known is not None and known is not result:
            raise ValueError(f"unit {unit_id!r}, arm {arm}: already {known}, now {result}")
        results[rank] = result
        if arm is Arm.CAND:
            self._parse_counts[rank] = parse_count or (_UNPARSABLE if result is ArmResult.UNPARSABLE else _PARSED)
        first_new = len(self._rows)
        if rank != first_new:
            return ()
        self._consume()
        return self._rows[first_new:]

    def _of(self, arm: Arm) -> list[ArmResult | None]:
        return self._bases if arm is Arm.BASE else self._cands

    def _consume(self) -> None:
        for rank in range(len(self._rows), len(self.unit_ids)):
            base, cand = self._bases[rank], self._cands[rank]
            if self.frozen or base is None or cand is None:
                return
            self._count(rank, base, cand)

    def _count(self, rank: int, base: ArmResult, cand: ArmResult) -> None:
        flips = self._evidence
        self._hidden_losses += hidden_loss(base, cand)
        self._parse_errors += self._parse_counts[rank].errors
        self._cand_questions += self._parse_counts[rank].questions
        if base.is_infra or cand.is_infra:
            self._excluded += 1
        elif base is not cand:
            if cand is ArmResult.RIGHT:
                flips.win()
            else:
                flips.loss()
        self._rows.append(EvidenceRow(rank, self.unit_ids[rank], base, cand, flips.wins, flips.losses, flips.log_e))
        if self.n_used:
            self._decision = self._exit()
        elif self._all_unparsable_by_candidate():
            self._decision = Decision.REJECT_UNSTABLE

    def _exit(self) -> Decision:
        flips, remaining = self._evidence, len(self.unit_ids) - len(self._rows)
        decision = self._rule.decide(flips.log_e, flips.wins, flips.losses, self.n_used, remaining)
        if decision.accepts:
            return reread(decision, self._rule, flips.wins, flips.losses, self._stability())
        return decision

    def _stability(self) -> Stability:
        cand = ParseCount(self._parse_errors, self._cand_questions)
        return Stability(self._hidden_losses, cand, self._max_parse_error_share)

    def _all_unparsable_by_candidate(self) -> bool:
        """Whether the whole ladder is missing and only the candidate is to blame: its base has results throughout."""
        if len(self._rows) < len(self.unit_ids):
            return False
        return all(row.cand is ArmResult.UNPARSABLE and not row.base.is_infra for row in self._rows)
