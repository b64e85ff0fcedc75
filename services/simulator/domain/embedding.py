"""Embeddings as hashed bags of words: texts that share words have vectors that point the same way."""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache

from services.simulator.domain.words import Lexicon

DIMENSIONS = 256


@lru_cache(maxsize=50_000)
def _place(stem: str) -> tuple[int, float]:
    digest = hashlib.blake2b(stem.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest[:4], "big") % DIMENSIONS, 1.0 if digest[4] & 1 else -1.0


def embed(text: str, lexicon: Lexicon) -> list[float]:
    """A vector of length 1 and `DIMENSIONS` components (feature hashing with signs, Weinberger et al. 2009, section 2).

    A text without content words gives the first unit vector.
    """
    vector = [0.0] * DIMENSIONS
    for stem in sorted(lexicon.stems(text)):
        index, sign = _place(stem)
        vector[index] += sign
    length = math.sqrt(sum(component * component for component in vector))
    if length == 0.0:
        return [1.0, *vector[1:]]
    return [component / length for component in vector]
