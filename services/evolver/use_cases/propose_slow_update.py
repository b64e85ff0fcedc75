"""The slow update at the end of an epoch: one call writes the MOMENTUM block of each skill (EVO-10)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.evolver.domain.errors import AnswerFault, InvalidRequest
from services.evolver.domain.guard import Guard
from services.evolver.domain.leaks import LeakIndex
from services.evolver.domain.momentum import Change, UnitChange, momentum_faults, sorted_changes, with_momentum
from services.evolver.domain.targets import NONE, statistics_text
from services.evolver.domain.validate import Rules, validate_candidate
from services.evolver.use_cases.ask_model import AskModel
from services.evolver.use_cases.in_parallel import in_parallel
from services.evolver.use_cases.ports import ModelRole, Origin
from services.skills import block_content, normalise_newlines, skill_file

_MOMENTUM_GUARD = Guard(writable_block="MOMENTUM")
_SHOWN_UNITS = 40
_SHOWN_STABLE = 10
_SHOWN_HISTORY = 40


@dataclass(frozen=True, slots=True)
class SlowUpdateJob:
    """Current skills by file name, the units answered in both epochs, and the epoch's edits in words."""

    origin: Origin
    skills: Mapping[str, str]
    changes: tuple[UnitChange, ...]
    history: tuple[str, ...]
    leaks: LeakIndex


@dataclass(frozen=True, slots=True)
class SlowUpdate:
    """The skills whose block changed, by file name, and why others were left as they were."""

    skills: Mapping[str, str]
    errors: tuple[str, ...]
    attempts: int


class ProposeSlowUpdate:
    """Writes what an epoch taught into the block that nothing else touches."""

    def __init__(self, ask: AskModel, skill_max_chars: int, momentum_max_chars: int) -> None:
        self._ask = ask
        self._max_chars = skill_max_chars
        self._momentum_max_chars = momentum_max_chars

    async def propose(self, job: SlowUpdateJob) -> SlowUpdate:
        """Return the updated skills. A skill that serves no changed or persistently wrong unit is left without a call.

        Raises InvalidRequest without skills, ModelUnavailable when the model can't be asked.
        """
        if not job.skills:
            raise InvalidRequest("no skill was given", field="skills")
        by_file: dict[str, list[UnitChange]] = {}
        for change in job.changes:
            by_file.setdefault(skill_file(change.task_type, job.skills), []).append(change)
        names = sorted(name for name, units in by_file.items() if name in job.skills and _has_news(units))
        results = await in_parallel(self._one(job, name, by_file[name]) for name in names)
        changed = {name: made.text for name, made in zip(names, results, strict=True) if made.text is not None}
        errors = [f"{name}: {fault}" for name, made in zip(names, results, strict=True) for fault in made.faults]
        return SlowUpdate(changed, tuple(errors), sum(made.attempts for made in results))

    async def _one(self, job: SlowUpdateJob, name: str, units: Sequence[UnitChange]) -> "_Made":
        original = normalise_newlines(job.skills[name])
        answer = await self._ask.ask(
            "slow.momentum",
            _values(name, original, units, job.history, self._momentum_max_chars),
            ModelRole.EVOLVE,
            job.origin,
            lambda found: self._read(found, original, job.leaks),
        )
        if answer.value is None:
            return _Made(None, answer.faults, answer.attempts)
        edited = with_momentum(original, answer.value)
        violations = validate_candidate(original, edited, Rules(self._max_chars, _MOMENTUM_GUARD, job.leaks))
        if violations:
            return _Made(None, tuple(map(str, violations)), answer.attempts)
        return _Made(edited if edited != original else None, (), answer.attempts)

    def _read(self, answer: Mapping[str, Any], original: str, leaks: LeakIndex) -> list[str]:
        lines = [" ".join(line.split()).removeprefix("- ") for line in answer["momentum"]]
        faults = momentum_faults(lines, self._momentum_max_chars)
        faults += [f"momentum: {line[:80]!r} repeats a question" for line in lines if leaks.leak_in(line, original)]
        if faults:
            raise AnswerFault(faults)
        return lines


@dataclass(frozen=True, slots=True)
class _Made:
    text: str | None
    faults: tuple[str, ...]
    attempts: int


def _has_news(units: Sequence[UnitChange]) -> bool:
    return any(unit.change is not Change.STABLE for unit in units)


def _values(
    name: str, skill: str, units: Sequence[UnitChange], history: Sequence[str], max_chars: int
) -> dict[str, str]:
    kinds = sorted_changes(units)
    counts = {kind.name.lower(): len(found) for kind, found in kinds.items()}
    return {
        "task_type": ", ".join(sorted({unit.task_type for unit in units})),
        "target_file": name,
        "skill": skill,
        "counts": statistics_text(counts),
        "improved": _listed(kinds[Change.IMPROVED], _SHOWN_UNITS),
        "regressed": _listed(kinds[Change.REGRESSED], _SHOWN_UNITS),
        "persistent": _listed(kinds[Change.PERSISTENT], _SHOWN_UNITS),
        "stable": _listed(kinds[Change.STABLE], _SHOWN_STABLE),
        "history": "\n".join(f"- {line}" for line in history[:_SHOWN_HISTORY]) or NONE,
        "previous_momentum": block_content(skill, "MOMENTUM") or NONE,
        "max_chars": str(max_chars),
    }


def _listed(units: Sequence[UnitChange], most: int) -> str:
    lines = [f"- {unit.unit_id}: {' '.join(unit.summary.split())}" for unit in units[:most]]
    more = [f"[... {len(units) - most} more ...]"] if len(units) > most else []
    return "\n".join([*lines, *more]) or NONE
