"""What a proposal for one task type rests on (EVO-5)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.evolver.domain.case import Case
from services.evolver.domain.diagnosis import Cause, Diagnosis
from services.evolver.domain.trace import estimate_tokens, trace_text


@dataclass(frozen=True, slots=True)
class PackLimits:
    """How many cases a pack holds and how many tokens (as `estimate_tokens` counts) their texts may have together."""

    failures: int = 8
    successes: int = 4
    tokens: int = 40_000


@dataclass(frozen=True, slots=True)
class PackedCase:
    """A case as text; `diagnosis` is None for a success, `cut` tells whether its trace was shortened."""

    question_id: str
    unit_id: str
    text: str
    diagnosis: Diagnosis | None
    cut: bool


@dataclass(frozen=True, slots=True)
class CasePack:
    """The cases of one type; `unit_ids` are the units that a gate must not judge the proposal by."""

    task_type: str
    target_file: str
    failures: tuple[PackedCase, ...]
    successes: tuple[PackedCase, ...]
    statistics: Mapping[str, Any]
    unit_ids: tuple[str, ...]

    @property
    def case_ids(self) -> tuple[str, ...]:
        """The question ids of all cases."""
        return tuple(case.question_id for case in (*self.failures, *self.successes))

    @property
    def has_defects(self) -> bool:
        """Whether any failure says that the skill must change."""
        return any(case.diagnosis and case.diagnosis.explanation.cause is Cause.DEFECT for case in self.failures)


def build_case_pack(
    task_type: str,
    target_file: str,
    cases: Sequence[Case],
    diagnoses: Mapping[str, Diagnosis],
    infra_count: int,
    limits: PackLimits,
) -> CasePack:
    """Return the pack of one type out of its answered cases (INFRA left out) and the diagnoses of the wrong ones."""
    by_id = {case.question.question_id: case for case in cases}
    wrong = [diagnoses[question_id] for question_id in by_id if question_id in diagnoses]
    failures = diverse_failures(wrong)[: limits.failures]
    successes = spread_successes([case for case in cases if case.answered.correct], limits.successes)
    shown = [*(by_id[diagnosis.question_id] for diagnosis in failures), *successes]
    texts = case_texts(shown, limits.tokens)
    packed = [
        PackedCase(
            case.question.question_id, case.question.unit_id, text, diagnoses.get(case.question.question_id), cut
        )
        for case, (text, cut) in zip(shown, texts, strict=True)
    ]
    return CasePack(
        task_type,
        target_file,
        tuple(packed[: len(failures)]),
        tuple(packed[len(failures) :]),
        pack_statistics(cases, wrong, infra_count),
        tuple(sorted({case.unit_id for case in packed})),
    )


def diverse_failures(diagnoses: Iterable[Diagnosis]) -> list[Diagnosis]:
    """Return the diagnoses with defects first, then lapses, degraded ones last; within each, categories take turns.

    Categories with more cases come first in each turn; ties and the cases of a category go by id.
    """
    groups: dict[tuple[bool, bool], dict[str, list[Diagnosis]]] = defaultdict(lambda: defaultdict(list))
    for diagnosis in sorted(diagnoses, key=lambda item: item.question_id):
        rank = (diagnosis.degraded, diagnosis.explanation.cause is not Cause.DEFECT)
        groups[rank][diagnosis.explanation.category.value].append(diagnosis)
    ordered = []
    for rank in sorted(groups):
        piles = sorted(groups[rank].items(), key=lambda pile: (-len(pile[1]), pile[0]))
        for turn in range(max(len(pile) for _, pile in piles)):
            ordered += [pile[turn] for _, pile in piles if turn < len(pile)]
    return ordered


def spread_successes(cases: Sequence[Case], count: int) -> list[Case]:
    """Return up to `count` cases spread evenly from the shortest to the longest way to a right answer."""
    ranked = sorted(cases, key=lambda case: (case.answered.steps_used, case.question.question_id))
    if len(ranked) <= count:
        return ranked
    if count < 2:
        return ranked[:count]
    return [ranked[round(index * (len(ranked) - 1) / (count - 1))] for index in range(count)]


def case_texts(cases: Sequence[Case], max_tokens: int) -> list[tuple[str, bool]]:
    """Return (text, was cut) of each case, together at most `max_tokens`.

    Each case may use an equal share of what is left, the smallest first, so that small ones leave room for large ones.
    """
    whole = {index: _case_text(case, max_tokens)[0] for index, case in enumerate(cases)}
    order = sorted(whole, key=lambda index: estimate_tokens(whole[index]))
    result: dict[int, tuple[str, bool]] = {}
    left = max_tokens
    for position, index in enumerate(order):
        result[index] = _case_text(cases[index], left // (len(order) - position))
        left -= estimate_tokens(result[index][0])
    return [result[index] for index in range(len(cases))]


def _case_text(case: Case, max_tokens: int) -> tuple[str, bool]:
    head = (
        f"<question>{case.question.text}</question>\n<options>\n{case.options_text}\n</options>\n"
        f"<gold_answer>{case.gold_text}</gold_answer>\n<prediction>{case.prediction_text}</prediction>\n"
        f"<evidence>{', '.join(case.answered.evidence) or '(none named)'}</evidence>\n<trace>\n"
    )
    tail = "\n</trace>"
    body, cut = trace_text(case.trace, max(0, max_tokens - estimate_tokens(head + tail) - 1))
    return f"{head}{body or '(no steps)'}{tail}", cut


def pack_statistics(cases: Sequence[Case], wrong: Sequence[Diagnosis], infra_count: int) -> dict[str, Any]:
    """Return the figures of a type's batch; means are absent where nothing was measured."""
    statistics: dict[str, Any] = {
        "answered": len(cases),
        "right": sum(case.answered.correct for case in cases),
        "wrong": sum(not case.answered.correct for case in cases),
        "infra": infra_count,
        "defects": sum(item.explanation.cause is Cause.DEFECT for item in wrong),
        "lapses": sum(item.explanation.cause is Cause.LAPSE and not item.degraded for item in wrong),
        "degraded": sum(item.degraded for item in wrong),
        "by_category": dict(Counter(item.explanation.category.value for item in wrong)),
    }
    if cases:
        statistics["mean_steps_used"] = round(sum(case.answered.steps_used for case in cases) / len(cases), 2)
    return statistics
