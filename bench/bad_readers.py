"""Bad bytes through every reader: each is accepted, or refused with a fault that says where."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bench.mutations import hard_inputs, mutated, sound_inputs
from bench.readers import READERS

CPU_SECONDS = 3.0
_LONGEST_FAULT = 20_000
_KEPT_BYTES = 300


@dataclass(slots=True)
class Tally:
    """What became of the inputs of one reader or service; `faults` are broken promises in words."""

    tried: int = 0
    accepted: int = 0
    refused: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Counts what another one counted as well."""
        self.tried += other.tried
        self.accepted += other.accepted
        self.refused += other.refused
        self.seconds += other.seconds
        self.faults += other.faults


def fuzzed(reader: str, examples: int, rng: random.Random, until: float) -> Tally:
    """The corpus, then so many mutations of it, through one reader; mutations stop at `until`, a monotonic time."""
    tally, sound, hard = Tally(), sound_inputs(reader), hard_inputs()
    began = time.monotonic()
    for name, content in sound.items():
        _take(tally, reader, name, content)
        if tally.refused:
            tally.faults.append(f"{reader}: the sound input {name} is refused")
    for name, content in hard.items():
        _take(tally, reader, name, content)
    for content in _mutations(examples, rng, tuple(sound.values()), tuple(hard.values())):
        if time.monotonic() > until:
            break
        _take(tally, reader, "a mutation", content)
    tally.seconds = time.monotonic() - began
    return tally


def _mutations(examples: int, rng: random.Random, sound: tuple[bytes, ...], hard: tuple[bytes, ...]) -> Iterator[bytes]:
    return (mutated(rng, sound, hard) for _ in range(examples))


def _take(tally: Tally, reader: str, name: str, content: bytes) -> None:
    tally.tried += 1
    refused, fault = outcome_of(reader, content)
    tally.refused += refused
    tally.accepted += not refused
    if fault:
        tally.faults.append(f"{reader}: {name} ({_shown(content)}): {fault}")


def outcome_of(reader: str, content: bytes) -> tuple[bool, str]:
    """Whether the input was refused, and what was wrong with the way in which it was treated (empty: nothing)."""
    read = READERS[reader]
    began = time.process_time()
    try:
        told: Iterable[str] = read.read(content)
    except read.declared as error:
        told = [str(error) or "no words"]
    except Exception as error:
        return True, "".join(traceback.format_exception_only(error)).strip() + _origin(error)
    seconds = time.process_time() - began
    if seconds > CPU_SECONDS:
        return bool(told), f"it took {seconds:.1f} s"
    return bool(told), next((f"unclear: {line[:200]!r}" for line in told if not _is_clear(reader, line)), "")


def _is_clear(reader: str, line: str) -> bool:
    return (
        READERS[reader].names.search(line) is not None
        and len(line) <= _LONGEST_FAULT
        and not any(sign in line for sign in ("Traceback", "object at 0x"))
    )


def _origin(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f" (at {frame.filename}:{frame.lineno})"


def _shown(content: bytes) -> str:
    cut = f"... {len(content)} bytes" if len(content) > _KEPT_BYTES else ""
    return f"{content[:_KEPT_BYTES]!r}{cut}"
