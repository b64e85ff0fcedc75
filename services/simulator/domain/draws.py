"""Chance as a pure function: equal keys give equal draws, whatever else happened before."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import TypeVar

Item = TypeVar("Item")

_STANDARD_NORMAL = NormalDist()
_TWO_64 = 2.0**64


class Draws:
    """Independent random numbers, each named by a label, fixed by the key parts given at construction.

    A draw depends on its label only, never on the order of calls, so that a walk that asks for one number more
    leaves the others as they were.
    """

    __slots__ = ("_key",)

    def __init__(self, *key_parts: object) -> None:
        joined = "\x1f".join(str(part) for part in key_parts)
        self._key = hashlib.blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=32).digest()

    def uniform(self, label: str) -> float:
        """A number in [0, 1)."""
        digest = hashlib.blake2b(label.encode("utf-8", "surrogatepass"), digest_size=8, key=self._key).digest()
        return (int.from_bytes(digest, "big") >> 11) * (2048.0 / _TWO_64)

    def happens(self, label: str, probability: float) -> bool:
        """True with the given probability."""
        return self.uniform(label) < probability

    def normal(self, label: str) -> float:
        """A standard normal number (inverse of its distribution function)."""
        return _STANDARD_NORMAL.inv_cdf(min(max(self.uniform(label), 1e-12), 1 - 1e-12))

    def log_normal(self, label: str, median: float, sigma: float) -> float:
        """A log-normal number with the given median; 0 where the median is 0."""
        return median * math.exp(sigma * self.normal(label)) if median > 0 else 0.0

    def choice(self, label: str, items: Sequence[Item]) -> Item:
        """One of the items; `items` must not be empty."""
        return items[min(int(self.uniform(label) * len(items)), len(items) - 1)]

    def weighted(self, label: str, weights: Mapping[str, float]) -> str:
        """One key, with probability proportional to its weight; at least one weight must be positive."""
        point = self.uniform(label) * sum(weights.values())
        chosen = ""
        for name, weight in weights.items():
            if weight <= 0:
                continue
            chosen = name
            point -= weight
            if point < 0:
                break
        return chosen

    def shuffled(self, label: str, items: Sequence[Item]) -> list[Item]:
        """The items in a drawn order."""
        ranks = {index: self.uniform(f"{label}/{index}") for index in range(len(items))}
        return [items[index] for index in sorted(ranks, key=lambda index: (ranks[index], index))]
