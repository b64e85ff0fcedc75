"""Where the parts of a skill lie that an edit must not touch. Offsets are characters of LF-normalised text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

BLOCKS = ("APPENDIX", "MOMENTUM")
MARKERS = tuple(f"<!-- {block}_{edge} -->" for block in BLOCKS for edge in ("START", "END"))

_MARKER = re.compile(r"<!--\s*(APPENDIX|MOMENTUM)_(START|END)\s*-->", re.IGNORECASE)
_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\n(?:.*\n)*?---[ \t]*(?:\n|\Z)")
_FENCE_LINE = re.compile(r"^[ \t]*(?:[-*+>] +|\d+[.)] +)?(`{3,}|~{3,})(.*)$", re.MULTILINE)
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The half-open range `[start, end)` of a text."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """Return the part of `text` that this span covers."""
        return text[self.start : self.end]

    def overlaps(self, other: "Span") -> bool:
        """Tell whether the two spans share at least one character."""
        return self.start < other.end and other.start < self.end

    def splits_at(self, point: int) -> bool:
        """Tell whether an insertion at `point` would land inside this span (its two edges are outside)."""
        return self.start < point < self.end


def holds_marker(text: str) -> bool:
    """Tell whether `text` holds one of the four block markers, however it is spaced or cased."""
    return _MARKER.search(text) is not None


def front_matter_span(text: str) -> Span:
    """Return the span of the YAML front matter with both `---` lines, or an empty span at 0 where there is none."""
    found = _FRONT_MATTER.match(text)
    return Span(0, found.end()) if found else Span(0, 0)


def block_spans(text: str) -> tuple[tuple[str, Span], ...]:
    """Return (block name, span with both markers) of each block, in text order.

    Total on malformed text, and on the safe side: a START without its END covers everything up to the next marker or
    the end of the text, a stray END covers itself.
    """
    found: list[tuple[str, Span]] = []
    markers = list(_MARKER.finditer(text))
    index = 0
    while index < len(markers):
        here = markers[index]
        following = markers[index + 1] if index + 1 < len(markers) else None
        name, edge = here[1].upper(), here[2].upper()
        if edge == "END":
            found.append((name, Span(here.start(), here.end())))
        elif following is not None and (following[1].upper(), following[2].upper()) == (name, "END"):
            found.append((name, Span(here.start(), following.end())))
            index += 1
        else:
            found.append((name, Span(here.start(), following.start() if following else len(text))))
        index += 1
    return tuple(found)


def marker_faults(text: str) -> tuple[str, ...]:
    """Return what is wrong with the block markers of `text`: spelling, pairing, order, more than one pair."""
    markers = list(_MARKER.finditer(text))
    faults = [f"marker {m[0]!r} is not written as its exact form" for m in markers if m[0] not in MARKERS]
    edges = [(m[1].upper(), m[2].upper()) for m in markers]
    for block in BLOCKS:
        starts, ends = edges.count((block, "START")), edges.count((block, "END"))
        if starts != ends:
            faults.append(f"{block}: {starts} START and {ends} END markers")
        elif starts > 1:
            faults.append(f"{block}: {starts} pairs of markers, at most one is allowed")
        elif starts == 1 and edges.index((block, "END")) != edges.index((block, "START")) + 1:
            faults.append(f"{block}: START is not followed by its own END")
    return tuple(faults)


def protected_spans(text: str) -> tuple[Span, ...]:
    """Return the spans no ordinary edit may touch: front matter (when there is one) and the marked blocks."""
    front = front_matter_span(text)
    blocks = [span for _, span in block_spans(text) if span.start >= front.end]
    return (front, *blocks) if front.end else tuple(blocks)


def block_content(text: str, block: str) -> str | None:
    """Return what stands between the markers of `block`, without surrounding blank space, or None without the block."""
    pair = re.search(rf"<!-- {block}_START -->(.*?)<!-- {block}_END -->", text, re.DOTALL)
    return pair[1].strip() if pair else None


def replace_block(text: str, block: str, content: str) -> str:
    """Return `text` with the content of `block` replaced; a block that is missing is added at the end.

    Bytes outside the block stay as they are, except that a missing final newline is added before a new block.
    """
    filled = f"<!-- {block}_START -->\n{content.strip()}\n<!-- {block}_END -->".replace("\n\n<!--", "\n<!--")
    for name, span in block_spans(text):
        if name == block:
            return text[: span.start] + filled + text[span.end :]
    separator = "" if text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{separator}{filled}\n"


def _fences(text: str) -> tuple[list[Span], int | None]:
    closed: list[Span] = []
    opened: tuple[int, str] | None = None
    for found in _FENCE_LINE.finditer(text):
        if opened is None:
            if not (found[1][0] == "`" and "`" in found[2]):
                opened = (found.start(), found[1])
        elif found[1].startswith(opened[1]) and not found[2].strip():
            closed.append(Span(opened[0], found.end()))
            opened = None
    return closed, opened[0] if opened else None


def fence_spans(text: str) -> tuple[Span, ...]:
    """Return the spans of the code fences, both fence lines included; one that is never closed runs to the end."""
    closed, start = _fences(text)
    return (*closed, Span(start, len(text))) if start is not None else tuple(closed)


def open_fence(text: str) -> int | None:
    """Return the offset of a code fence that is never closed, or None."""
    return _fences(text)[1]


def section_spans(text: str, headings: Sequence[str]) -> tuple[tuple[str, Span], ...]:
    """Return (heading, span) of each section whose heading line is in `headings` (for example `## Tools`).

    A section runs from its heading line to the next heading of the same or a higher level, headings inside code fences
    aside. A heading that stands several times gives several spans.
    """
    fences = fence_spans(text)
    wanted = {" ".join(heading.split()) for heading in headings}
    heads = [
        (found.start(), len(found[1]), f"{found[1]} {' '.join(found[2].rstrip().rstrip('#').split())}")
        for found in _HEADING.finditer(text)
        if not any(fence.start <= found.start() < fence.end for fence in fences)
    ]
    sections = []
    for index, (offset, level, title) in enumerate(heads):
        if title in wanted:
            end = next((o for o, other, _ in heads[index + 1 :] if other <= level), len(text))
            sections.append((title, Span(offset, end)))
    return tuple(sections)
