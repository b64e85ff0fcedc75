"""QUA-13: whatever stands in a file, a stream, a model's answer or a request: an answer, or a clear error.

    python -m bench.bad_input [--examples 500] [--rounds 40] [--seconds 600] [--seed 1] [--quick]

Every reader first gets what it accepts (`bench/corpus/sound`) and what is hard on some reader (`bench/corpus/hard`: cut
UTF-8, byte order marks, NaN, deep nesting, endless numbers, keys that stand twice, half a surrogate pair, lone CR,
U+2028, NUL, a quote that never ends and so on), then mutations of both, drawn from the seed. Each input must be read,
or refused by the error that the reader declares, within seconds, in words that name the place; what is accepted must
survive being written and read again. Then every method of the four services, behind their interceptors on real
sockets, gets requests whose fields hold anything that their types can hold. Each must be answered, or refused by a
status that names the field where one is at fault; what the store refuses must leave its files and rows as they were.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.bad_readers import Tally, fuzzed
from bench.bad_requests import fuzzed_requests
from bench.mutations import hard_inputs, sound_inputs
from bench.readers import READERS
from bench.record import Figure, at_most, shown, table, write
from services.runtime.logging import configure_logging

_QUICK = (60, 3)
_SHOWN = 20


def run_readers(examples: int, seed: int, seconds: float) -> dict[str, Tally]:
    """What became of the corpus and so many mutations, by reader; each stops after its share of the seconds."""
    found = {}
    for reader in READERS:
        until = time.monotonic() + seconds / len(READERS)
        found[reader] = fuzzed(reader, examples, random.Random(f"{seed} {reader}"), until)
        print(f"{reader}: {found[reader].tried:,} inputs, {len(found[reader].faults)} faults", flush=True)
    return found


def figures_of(readers: Mapping[str, Tally], services: Mapping[str, Tally]) -> list[Figure]:
    """The rows of the table."""
    rows = []
    for what, tallies in (("", readers), ("requests to the ", services)):
        for name, tally in tallies.items():
            about = f"{tally.refused:,} refused clearly, {tally.accepted:,} accepted"
            rate = f"{tally.tried / max(tally.seconds, 1e-9):,.0f}/s"
            rows.append(shown(f"{what}{name}: inputs ({about}, {rate})", tally.tried, ""))
            rows.append(at_most(f"{what}{name}: faults", len(tally.faults), "", 0))
    everything = [*readers.values(), *services.values()]
    rows.append(shown("inputs in all", sum(each.tried for each in everything), ""))
    rows.append(at_most("faults in all", sum(len(each.faults) for each in everything), "", 0))
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs it; 1 when a promise was broken."""
    options = _parser().parse_args(arguments)
    examples, rounds = _QUICK if options.quick else (options.examples, options.rounds)
    configure_logging("bad-input", "json", "CRITICAL")  # every refusal would be a line
    began = time.monotonic()
    readers = run_readers(examples, options.seed, options.seconds / 2)
    with tempfile.TemporaryDirectory(prefix="bad-input-") as folder:
        answers = asyncio.run(fuzzed_requests(Path(folder), rounds, options.seed, options.seconds / 2))
    services = {name: each.tally for name, each in answers.items()}
    figures = [*figures_of(readers, services), shown("duration", time.monotonic() - began, "s")]
    print(table(figures))
    faults = [fault for tally in (*readers.values(), *services.values()) for fault in tally.faults]
    details = {
        "seed": options.seed,
        "corpus": {"hard": len(hard_inputs()), "sound": sum(len(sound_inputs(reader)) for reader in READERS)},
        "answered_by_method": {name: dict(sorted(each.by_method.items())) for name, each in answers.items()},
        "faults": faults[:100],
    }
    write("bad_input", __doc__ or "", figures, details)
    for fault in faults[:_SHOWN]:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=500, help="mutations for each reader")
    parser.add_argument("--rounds", type=int, default=40, help="requests to each method of each service")
    parser.add_argument("--seconds", type=float, default=600, help="for all of it, at most")
    parser.add_argument("--seed", type=int, default=1, help="of the mutations and the requests")
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK[0]} mutations, {_QUICK[1]} rounds")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
