"""Adding reminders to a skill's APPENDIX, and merging the list when it has grown too long (EVO-9)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.evolver.domain.errors import AnswerFault
from services.evolver.domain.guard import Guard
from services.evolver.domain.leaks import LeakIndex
from services.evolver.domain.reminders import appendix_reminders, new_reminders, with_reminders
from services.evolver.domain.validate import Rules, validate_candidate
from services.evolver.use_cases.ask_model import AskModel
from services.evolver.use_cases.ports import ModelRole, Origin
from services.skills import normalise_newlines

_APPENDIX_GUARD = Guard(writable_block="APPENDIX")
_MERGED_SHARE = 2 / 3


@dataclass(frozen=True, slots=True)
class AppendixUpdate:
    """`text` is exactly what came in when nothing was added or merged; `errors` say what was refused."""

    text: str
    added_count: int
    consolidated: bool
    errors: tuple[str, ...]


class ConsolidateAppendix:
    """Writes the APPENDIX of a skill."""

    def __init__(self, ask: AskModel, skill_max_chars: int, threshold: int) -> None:
        self._ask = ask
        self._max_chars = skill_max_chars
        self._threshold = threshold

    async def update(
        self, text: str, reminders: Sequence[str], threshold: int, leaks: LeakIndex, origin: Origin
    ) -> AppendixUpdate:
        """Return the skill with the new reminders; above `threshold` entries (0: the default) the model merges them.

        A merge that fails its checks leaves the longer list. Raises ModelUnavailable when a merge can't be asked for.
        """
        rules = Rules(self._max_chars, _APPENDIX_GUARD, leaks)
        original = normalise_newlines(text)
        existing = appendix_reminders(original)
        fresh, errors = new_reminders(existing, reminders)
        clean = [reminder for reminder in fresh if leaks.leak_in(reminder, original) is None]
        errors += [f"{reminder[:80]!r}: repeats a question" for reminder in fresh if reminder not in clean]
        entries = [*existing, *clean]
        limit = threshold or self._threshold
        merged = await self._merged(original, entries, limit, rules, origin) if len(entries) > limit else None
        if merged is not None and merged.faults:
            errors += [f"merge: {fault}" for fault in merged.faults]
        if merged is not None and not merged.faults:
            return AppendixUpdate(merged.text, len(clean), True, tuple(errors))
        if not clean:
            return AppendixUpdate(text, 0, False, tuple(errors))
        extended = with_reminders(original, entries)
        violations = validate_candidate(original, extended, rules)
        if violations:
            return AppendixUpdate(text, 0, False, (*errors, *map(str, violations)))
        return AppendixUpdate(extended, len(clean), False, tuple(errors))

    async def _merged(
        self, original: str, entries: Sequence[str], threshold: int, rules: Rules, origin: Origin
    ) -> "_Merged":
        limit = max(1, int(threshold * _MERGED_SHARE))
        values = {"skill": original, "reminders": "\n".join(f"- {entry}" for entry in entries), "limit": str(limit)}
        answer = await self._ask.ask(
            "evolve.consolidate", values, ModelRole.EVOLVE, origin, lambda found: _read_merged(found, limit)
        )
        if answer.value is None:
            return _Merged(original, answer.faults)
        text = with_reminders(original, answer.value)
        return _Merged(text, tuple(map(str, validate_candidate(original, text, rules))))


@dataclass(frozen=True, slots=True)
class _Merged:
    text: str
    faults: tuple[str, ...]


def _read_merged(answer: Mapping[str, Any], limit: int) -> list[str]:
    reminders, faults = new_reminders([], answer["reminders"])
    if len(reminders) > limit:
        faults.append(f"reminders: {len(reminders)} were given, at most {limit} may remain")
    if not reminders:
        faults.append("reminders: none is left")
    if faults:
        raise AnswerFault(faults)
    return reminders
