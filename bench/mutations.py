"""Inputs that are nearly right or very wrong: a committed corpus, and mixtures of it drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
LONGEST = 60_000
_TOKENS = (
    b"\x00", b"\r", b"\r\n", b"\n", b"\xef\xbb\xbf", b"\xff", b"\xc3", b"\xe2\x80\xa8", b"\xc2\x85", b"\\ud800",
    b"\\u0000", b'"', b"'", b"{", b"}", b"[", b"]", b",", b":", b"\\", b"---\n", b"...", b"NaN", b"-Infinity", b"null",
    b"true", b"1e999", b"-0", b"9" * 5000, b"2020-99-99", b"0o8", b"!!int x", b"&a", b"*a", b"<<", b"{{x}}", b"%",
    b"data: ", b"data", b"event: error\n", b"[DONE]", b"</think>", b"<!-- APPENDIX_START -->", b"```", b"..", b"/",
    "İ".encode(), "٣".encode(), "²".encode(), b"\xf0\x9f\x98\x80", b"[" * 2000, b"<think>",
)  # fmt: skip


def hard_inputs() -> Mapping[str, bytes]:
    """The inputs that are hard on some reader, by name."""
    return _contents("hard")


def sound_inputs(reader: str) -> Mapping[str, bytes]:
    """Inputs that a reader accepts, by name."""
    return _contents(f"sound/{folder_name(reader)}")


def folder_name(reader: str) -> str:
    """The corpus folder of a reader."""
    return "".join(letter if letter.isalnum() else "-" for letter in reader.lower())


@cache
def _contents(folder: str) -> Mapping[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((CORPUS / folder).iterdir())}


def mutated(rng: random.Random, sound: Sequence[bytes], hard: Sequence[bytes]) -> bytes:
    """One to four changes of an input: flipped bytes, cuts, doublings, splices with another one, hostile tokens."""
    content = rng.choice(sound) if sound and rng.random() < 0.8 else rng.choice(hard)
    for _ in range(rng.randint(1, 4)):
        content = rng.choice(_CHANGES)(rng, content, rng.choice([*sound, *hard]))[:LONGEST]
    return content


def _flip(rng: random.Random, content: bytes, _: bytes) -> bytes:
    changed = bytearray(content)
    for _count in range(rng.randint(1, 3)):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _truncate(rng: random.Random, content: bytes, _: bytes) -> bytes:
    return content[: rng.randint(0, len(content))]


def _remove(rng: random.Random, content: bytes, _: bytes) -> bytes:
    start, end = _piece(rng, content)
    return content[:start] + content[end:]


def _double(rng: random.Random, content: bytes, _: bytes) -> bytes:
    start, end = _piece(rng, content)
    return content[:end] + content[start:end] * rng.randint(1, 3) + content[end:]


def _splice(rng: random.Random, content: bytes, other: bytes) -> bytes:
    start, end = _piece(rng, other)
    at = rng.randint(0, len(content))
    return content[:at] + other[start:end] + content[at + rng.randint(0, end - start) :]


def _token(rng: random.Random, content: bytes, _: bytes) -> bytes:
    start, end = _piece(rng, content)
    return content[:start] + rng.choice(_TOKENS) + content[start if rng.random() < 0.5 else end :]


def _value(rng: random.Random, content: bytes, _: bytes) -> bytes:
    """Another value behind one of the colons or commas, up to where the next one may begin."""
    places = [at for at, byte in enumerate(content) if byte in b":,"]
    if not places:
        return content
    at = rng.choice(places) + 1
    end = min((found for mark in (b",", b"}", b"\n") if (found := content.find(mark, at)) >= 0), default=len(content))
    return content[:at] + b" " + rng.choice(_TOKENS) + content[end:]


def _piece(rng: random.Random, content: bytes) -> tuple[int, int]:
    start = rng.randint(0, len(content))
    return start, min(len(content), start + rng.choice((1, 2, 8, 64, 1000)))


_CHANGES: Sequence[Callable[[random.Random, bytes, bytes], bytes]] = (
    _flip, _truncate, _remove, _double, _splice, _token, _value,
)  # fmt: skip
