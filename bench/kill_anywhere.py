"""QUA-11: a training whose processes are killed at random moments decides what an undisturbed one decides.

`python -m bench.kill_anywhere --kills 50 --seed 1` trains on the bundled sample from an empty data root, undisturbed.
Then the same run again in a data root of its own, while `kill -9` hits a random process of trainer, store, inference,
gate, evolver and simulated model at random moments. Services are started again as a supervisor would, the trainer as a
person would: with the command that its last line names. When a training ends with kills left, another one takes
the rest. Every row and file that says what was decided is compared then. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.decided import differences, faults
from bench.house import House, HouseApart, HouseEmbedded
from bench.record import Figure, at_most, shown, table, write

RUN = "kill"
SHORT = {"VIDEOTREE_TRAINER_GATE_N_MAX": "24"}
SIZE = ("--epochs", "2", "--steps", "2", "--batch-size", "40")
_PATIENCE_SECONDS = 1800.0
_POLL_SECONDS = 0.02
_SHOWN_DIFFERENCES = 20


@dataclass(slots=True)
class Disturbance:
    """What was done to a training: (seconds since its start, process) of each kill, and how its attempts ended."""

    kills: list[tuple[float, str]] = field(default_factory=list)
    ends: list[tuple[int, str]] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Killing:
    """How many kills at most, and how far apart: uniform between two numbers of seconds."""

    kills: int
    apart: tuple[float, float]


def train(house: House, size: Sequence[str], killing: Killing, rng: random.Random) -> Disturbance:
    """Trains to the end, through all kills. Raises RuntimeError when it can't be brought to its end."""
    disturbance = Disturbance()
    began = time.monotonic()
    house.open()
    try:
        _attempts(house, size, killing, rng, disturbance, began)
    finally:
        house.close()
    disturbance.seconds = time.monotonic() - began
    return disturbance


def _attempts(
    house: House, size: Sequence[str], killing: Killing, rng: random.Random, disturbance: Disturbance, began: float
) -> None:
    command: tuple[str, ...] = ("train", "--run-id", RUN, *size, *house.flags())
    next_kill = began + rng.uniform(*killing.apart)
    while time.monotonic() < began + _PATIENCE_SECONDS:
        trainer = house.start_trainer(*command)
        while trainer.poll() is None and time.monotonic() < began + _PATIENCE_SECONDS:
            time.sleep(_POLL_SECONDS)
            if time.monotonic() >= next_kill and len(disturbance.kills) < killing.kills:
                _kill_one(house, rng, disturbance, began)
                next_kill = time.monotonic() + rng.uniform(*killing.apart)
        code, output = trainer.returncode, house.log.read_text(encoding="utf-8")
        disturbance.ends.append((code, _last_line(output)))
        if code == 0:
            return
        _require_clear(code, output)
        if f"--resume {RUN}" in output:
            command = ("train", "--resume", RUN, *house.flags())
        house.until_serving()
    raise RuntimeError(f"no end after {_PATIENCE_SECONDS:.0f} s: {disturbance.ends[-5:]}")


def _kill_one(house: House, rng: random.Random, disturbance: Disturbance, began: float) -> None:
    alive = sorted(house.pids())
    victim = rng.choice(alive)
    house.kill(victim)
    disturbance.kills.append((round(time.monotonic() - began, 2), victim))
    house.revive(victim)


def _require_clear(code: int, output: str) -> None:
    """A trainer that was not itself killed ends with exit code 1 and says in one line what to do."""
    if "Traceback" in output or "unexpected" in output:
        raise RuntimeError(f"a traceback or an unexpected error:\n{output}")
    if code not in {1, -9}:
        raise RuntimeError(f"exit code {code}:\n{output}")
    if code == 1 and not re.search(r"^error: \S", _last_line(output)):
        raise RuntimeError(f"no last line that says what happened:\n{output}")


def _last_line(output: str) -> str:
    lines = output.strip().splitlines()
    return lines[-1] if lines else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs it; 0 when nothing differs."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the processes are stopped then too
    kind = HouseEmbedded if options.embedded else HouseApart
    killing = Killing(options.kills, (options.apart[0], options.apart[1]))
    rng = random.Random(options.seed)
    folder = Path(tempfile.mkdtemp(prefix="kill-anywhere-"))
    undisturbed = kind(folder / "undisturbed", SHORT)
    plain = train(undisturbed, SIZE, Killing(0, (1, 1)), rng)
    print(f"undisturbed: {plain.seconds:.0f} s", flush=True)
    done: list[Disturbance] = []
    found = [f"undisturbed: {line}" for line in faults(undisturbed.data)]
    while (left := options.kills - sum(len(each.kills) for each in done)) > 0:
        house = kind(folder / f"disturbed-{len(done) + 1}", SHORT)
        done.append(train(house, SIZE, Killing(left, killing.apart), rng))
        lines = [*differences(undisturbed.data, house.data), *faults(house.data)]
        found += [f"training {len(done)}: {line}" for line in lines]
        print(_told(done[-1], lines), flush=True)
    kept = _report(options, plain, done, found)
    for line in found[:_SHOWN_DIFFERENCES]:
        print(f"DIFFERS  {line}")
    if found:
        print(f"data roots kept in {folder}")
    else:
        shutil.rmtree(folder)
    print(f"written to {kept}")
    return 1 if found else 0


def _told(disturbance: Disturbance, lines: Sequence[str]) -> str:
    victims = Counter(name for _, name in disturbance.kills)
    counts = ", ".join(f"{name} {count}" for name, count in sorted(victims.items()))
    return (
        f"disturbed: {disturbance.seconds:.0f} s, {len(disturbance.kills)} kills ({counts}), "
        f"{len(disturbance.ends)} attempts of the trainer, {len(lines)} differences"
    )


def _report(options: argparse.Namespace, plain: Disturbance, done: Sequence[Disturbance], found: Sequence[str]) -> Path:
    victims = Counter(name for each in done for _, name in each.kills)
    figures: list[Figure] = [
        at_most("rows or files that differ from the undisturbed run", len(found), "", 0),
        shown("kills", sum(victims.values()), ""),
        *(shown(f"kills of the {name}", count, "") for name, count in sorted(victims.items())),
        shown("attempts of the trainer", sum(len(each.ends) for each in done), ""),
        shown("trainings that were disturbed", len(done), ""),
        shown("undisturbed training", plain.seconds, "s"),
        shown("disturbed trainings together", sum(each.seconds for each in done), "s"),
    ]
    print(table(figures))
    details = {
        "seed": options.seed,
        "stack": "embedded" if options.embedded else "apart",
        "kills": [each.kills for each in done],
        "ends": [Counter(line for code, line in each.ends if code != -9) for each in done],
        "differences": list(found[:100]),
    }
    name = "kill_anywhere_embedded" if options.embedded else "kill_anywhere"
    return write(name, __doc__ or "", figures, details)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.kill_anywhere")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1, help="of the moments and the victims")
    parser.add_argument("--apart", type=float, nargs=2, default=(1.0, 8.0), metavar=("LEAST", "MOST"), help="seconds")
    parser.add_argument("--embedded", action="store_true", help="the stack is the trainer's own, and dies with it")
    return parser


if __name__ == "__main__":
    sys.exit(main())
