"""QUA-12: whichever step of a file write is interrupted, the old content or the new stands there afterwards.

    python -m bench.torn_writes [--quick]

Every request of the store that writes a file, and every repair at its start, is run on the same small data root by the
real use cases over their adapters. Each of its steps (write, flush, fsync of the file, replace, fsync of the folder) is
interrupted once in each way: by an error of the step, by a disk that is full after half of the data, by a process that
kills itself before the step, in the middle of a write or after the step, and by a loss of power, which also takes what
was not forced to the disk. Then a store is started anew, and all that it answers, its rows and its files are held
against those before the request and those after it; a request that was answered must stand. Every fifth time the
request is sent again, and must then do what it does undisturbed. `--quick` tries every seventh interruption. The data
root lies in memory where it can: what a loss of power takes is counted, not tried.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.message import Message

from bench.breaking_files import ONLY_WRITES, BreakableOperations, LossyDisk, Way
from bench.record import Figure, at_most, shown, table, write
from bench.store_in_process import OpenStore, open_store
from bench.store_writes import READS, WRITES, Write, prepare
from services.runtime.logging import configure_logging
from services.store.domain.errors import StoreError

_ANSWERED, _REFUSED, _UNEXPECTED = 0, 3, 4
_UNFINISHED = (".tmp-", ".add-", ".new-")
_OF_THE_PROCESS = (".store.lock", "harness.db-", "baseline.db-", "calls.db-")
_LASTING = ("replace", "fsync_folder")
_EVERY_QUICK = 7
_EVERY_REPEAT = 5
_SHOWN = 20
_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a data root holds after a start: answers to every read, rows by database, digests by file."""

    answers: tuple[object, ...]
    rows: Mapping[str, tuple[str, ...]]
    files: Mapping[str, str]
    leftovers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Interruption:
    """Step number `at` of a write, from 1, and what happens there; one past the last step is after the answer."""

    at: int
    step: str
    way: Way


@dataclass(slots=True)
class Tally:
    """What was tried and what was found."""

    steps: int = 0
    ways: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    torn: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    repeats: int = 0
    seconds: float = 0.0

    @property
    def broken(self) -> list[str]:
        """Every broken promise in words."""
        kinds = {"torn": self.torn, "lost": self.lost, "left over": self.leftovers, "unexpected": self.unexpected}
        return [f"{kind}: {line}" for kind, lines in kinds.items() for line in lines]


class Bench:
    """Tries writes on copies of one data root, which always lie at the same path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._filled = folder / "filled"
        self._root = folder / "data"
        asyncio.run(_fill(self._filled))

    def try_write(self, name: str, tally: Tally, every: int = 1, last: int | None = None) -> None:
        """Interrupts every step of a write in every way, or only each `every`-th time, or the `last` times."""
        wanted = WRITES[name]
        self._reset(wanted)
        old = look(self._root)
        self._reset(wanted)
        steps = _steps_of(self._root, wanted)
        new = look(self._root)
        tally.steps += len(steps)
        chosen = list(_interruptions(steps))[-(last or 0) :: every]
        for number, interruption in enumerate(chosen):
            self._reset(wanted)
            end = self._run_interrupted(wanted, interruption)
            where = f"{name}: {interruption.way} (step {interruption.at} of {len(steps)}, {interruption.step}), {end}"
            tally.ways[interruption.way] += 1
            tally.ends[end.partition(":")[0]] += 1
            if end.startswith("unexpected"):
                tally.unexpected.append(where)
            seen, again = asyncio.run(_look_and_repeat(self._root, wanted, None if number % _EVERY_REPEAT else old))
            tally.torn += [f"{where}: {what}" for what in _neither(seen, old, new)]
            tally.leftovers += [f"{where}: {path}" for path in seen.leftovers]
            if end == "answered" and seen != new:
                tally.lost.append(where)
            if again is not None:
                tally.repeats += 1
                tally.torn += [f"{where}, then again: {what}" for what in _neither(again, new, new)]

    def _reset(self, wanted: Write) -> None:
        shutil.rmtree(self._root, ignore_errors=True)
        shutil.copytree(self._filled, self._root)
        if wanted.prepare is not None:
            wanted.prepare(self._root)

    def _run_interrupted(self, wanted: Write, interruption: Interruption) -> str:
        aside, told = self._folder / "aside", self._folder / "told"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        told.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            _die_trying(self._root, wanted, interruption, aside, told)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            return "answered" if told.exists() else f"killed by signal {os.WTERMSIG(status)}"
        code = os.WEXITSTATUS(status)
        if code == _UNEXPECTED:
            return f"unexpected: {told.read_text()}"
        return {_ANSWERED: "answered", _REFUSED: "refused"}.get(code, f"unexpected: exit code {code}")


def _die_trying(root: Path, wanted: Write, interruption: Interruption, aside: Path, told: Path) -> None:
    """The child: it never returns."""
    try:
        disk = LossyDisk(aside) if interruption.way is Way.POWER_CUT else None
        operations = BreakableOperations(interruption.at, interruption.way, disk=disk, armed=wanted.call is None)
        asyncio.run(_request(root, wanted, operations))
        if disk is not None:
            told.touch()
            operations.cut_power()
        os._exit(_ANSWERED)
    except StoreError:
        os._exit(_REFUSED)
    except BaseException as error:
        # An error of the disk while the store starts is told by the operating system's own words.
        if wanted.call is None and isinstance(error, OSError):
            os._exit(_REFUSED)
        told.write_text("".join(traceback.format_exception(error)))
        os._exit(_UNEXPECTED)


async def _request(root: Path, wanted: Write, operations: BreakableOperations) -> None:
    async with open_store(root, operations) as store:
        operations.armed = True
        if wanted.call is not None:
            await store.call(*wanted.call)
        operations.armed = False


async def _fill(root: Path) -> None:
    async with open_store(root) as store:
        await prepare(store)


def _steps_of(root: Path, wanted: Write) -> list[str]:
    operations = BreakableOperations(armed=wanted.call is None)
    asyncio.run(_request(root, wanted, operations))
    return operations.steps


def _interruptions(steps: Sequence[str]) -> Iterator[Interruption]:
    for at, step in enumerate(steps, start=1):
        yield from (Interruption(at, step, way) for way in Way if _makes_a_difference(step, way))
    yield Interruption(len(steps) + 1, "after the answer", Way.POWER_CUT)


def _makes_a_difference(step: str, way: Way) -> bool:
    """After the other steps nothing happens that is not after a death before the next one."""
    return step == "write" if way in ONLY_WRITES else way is not Way.DEATH_AFTER or step in _LASTING


def look(root: Path) -> Seen:
    """Starts a store, asks it everything, and reads what lies there."""
    return asyncio.run(_look_and_repeat(root, Write(None), None))[0]


async def _look_and_repeat(root: Path, wanted: Write, old: Seen | None) -> tuple[Seen, Seen | None]:
    """What is seen; and once more, after the request was sent again, where everything was still `old`."""
    async with open_store(root) as store:
        seen = await _seen(store, root)
        if wanted.call is None or old is None or seen != old:
            return seen, None
        await store.call(*wanted.call)
        return seen, await _seen(store, root)


async def _seen(store: OpenStore, root: Path) -> Seen:
    answers = tuple([await _answer(store, method, request) for method, request in READS])
    return await asyncio.to_thread(_seen_on_disk, root, answers)


def _seen_on_disk(root: Path, answers: tuple[object, ...]) -> Seen:
    rows, files, leftovers = {}, {}, []
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.name.startswith(_UNFINISHED):
            leftovers.append(name)
        elif path.is_file() and path.suffix == ".db":
            rows[name] = _rows(path)
        elif path.is_file() and not path.name.startswith(_OF_THE_PROCESS):
            files[name] = _digest(path)
    return Seen(answers, rows, files, tuple(leftovers))


async def _answer(store: OpenStore, method: str, request: Message) -> object:
    try:
        answer = await store.call(method, request)
    except StoreError as error:
        return f"{type(error).__name__}: {error}"
    parts = answer if isinstance(answer, list) else [answer]
    return b"".join(part.SerializeToString(deterministic=True) for part in parts)


def _rows(database: Path) -> tuple[str, ...]:
    # A database that nobody has open is read as it lies there; SQLite would leave files beside it.
    mode = "mode=ro" if database.with_name(f"{database.name}-wal").exists() else "immutable=1"
    with closing(sqlite3.connect(f"file:{database}?{mode}", uri=True)) as connection:
        return tuple(sorted(connection.iterdump()))


def _digest(path: Path) -> str:
    content = path.read_bytes()
    if path.name == "backup.json":  # pages of equal databases may differ
        index = json.loads(content)
        faults = [name for name, sha256 in index["sha256"].items() if _sha256(path.parent / name) != sha256]
        index["sha256"] = sorted(index["sha256"])
        content = json.dumps([index, faults]).encode()
    return hashlib.sha256(content).hexdigest()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "missing"


def _neither(seen: Seen, old: Seen, new: Seen) -> Iterator[str]:
    """What is neither as before nor as after."""
    if seen.answers not in (old.answers, new.answers):
        strange = [
            READS[at][0] for at, answer in enumerate(seen.answers) if answer not in (old.answers[at], new.answers[at])
        ]
        yield f"the answers {', '.join(strange)}" if strange else "some answers are old and some are new"
    for what in ("rows", "files"):
        found, before, after = getattr(seen, what), getattr(old, what), getattr(new, what)
        for name in sorted({*found, *before, *after}):
            if found.get(name) not in (before.get(name), after.get(name)):
                yield f"the {what} of {name}" if name in found else f"{name} is gone"


def run(names: Sequence[str] = tuple(WRITES), every: int = 1, last: int | None = None) -> Tally:
    """Tries these writes, each `every`-th interruption of them, or the `last` ones of each."""
    configure_logging("torn-writes", "json", "CRITICAL")  # repairs are meant here
    tally, began = Tally(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="torn-writes-", dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        bench = Bench(Path(folder))
        for name in names:
            bench.try_write(name, tally, every, last)
            print(f"{time.monotonic() - began:6.1f} s  {name}", flush=True)
    tally.seconds = time.monotonic() - began
    return tally


def figures_of(tally: Tally, writes: int) -> list[Figure]:
    """The rows of the table."""
    tried = sum(tally.ways.values())
    died = sum(count for end, count in tally.ends.items() if end.startswith("killed"))
    return [
        shown(f"interruptions of {writes} kinds of writes with {tally.steps} steps", tried, ""),
        shown("of these the process died", died, ""),
        shown("of these refused clearly", tally.ends["refused"], ""),
        shown("requests sent again after an interruption", tally.repeats, ""),
        at_most("contents that are neither the old nor the new", len(tally.torn), "", 0),
        at_most("answered and not there after the start", len(tally.lost), "", 0),
        at_most("leftovers after the start", len(tally.leftovers), "", 0),
        at_most("unexpected errors", len(tally.unexpected), "", 0),
        shown("duration", tally.seconds, "s"),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs it; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"each {_EVERY_QUICK}th interruption")
    parser.add_argument("--only", metavar="WRITE", choices=list(WRITES), action="append", help="a kind of write")
    parser.add_argument("--last", type=int, metavar="N", help="only the last N interruptions of each kind")
    parser.add_argument("--no-results", action="store_true", help="write no file of results")
    options = parser.parse_args(arguments)
    names = options.only or list(WRITES)
    tally = run(names, _EVERY_QUICK if options.quick else 1, options.last)
    figures = figures_of(tally, len(names))
    print(table(figures))
    details = {"ways": tally.ways, "ends": tally.ends, "writes": names, "broken": tally.broken[:100]}
    if not options.no_results:
        write("torn_writes", __doc__ or "", figures, details)
    for line in tally.broken[:_SHOWN]:
        print(line, file=sys.stderr)
    return 1 if tally.broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
