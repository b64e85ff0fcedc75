"""Cutting a sequence into pieces of about equal length where neighbours differ most (dynamic programming)."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PieceLength:
    """Wanted length of a piece and its bounds, in items; a sequence shorter than `shortest` is one piece."""

    wanted: int
    shortest: int
    longest: int


def cut(differences: Sequence[float], length: PieceLength, *, evenness: float = 1.0) -> list[tuple[int, int]]:
    """Half-open ranges that cover a sequence of `len(differences) + 1` items.

    `differences[i]` in [0, 1] says how much item i differs from item i + 1. The cut maximises the sum, over the
    boundaries, of how far the difference lies above the mean difference (so that a boundary is worth nothing by
    itself), minus `evenness * ((length - wanted) / wanted)^2` of each piece; the earliest boundaries win a tie. Every
    piece is within the bounds if the sequence can be cut so, else the last one may be too short.
    """
    count = len(differences) + 1
    mean = sum(differences) / len(differences) if differences else 0.0
    unreachable = float("-inf")
    best = [0.0] + [unreachable] * count
    came_from = [0] * (count + 1)
    for end in range(1, count + 1):
        gain = differences[end - 1] - mean if end < count else 0.0
        for start in range(max(0, end - length.longest), end):
            size = end - start
            if best[start] == unreachable or (size < length.shortest and end < count):
                continue
            too_short = 2.0 if size < length.shortest else 0.0
            value = best[start] + gain - evenness * ((size - length.wanted) / length.wanted) ** 2 - too_short
            if value > best[end]:
                best[end], came_from[end] = value, start
    return _ranges(came_from, count)


def _ranges(came_from: Sequence[int], count: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    end = count
    while end > 0:
        found.append((came_from[end], end))
        end = came_from[end]
    return found[::-1]
