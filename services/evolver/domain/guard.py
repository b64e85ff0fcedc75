"""Which parts of a text an edit may not change, for a skill and for a prompt template alike."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from services.skills import Span, block_spans, front_matter_span, protected_spans, section_spans

_GAP = re.compile(r"\{\{.*?\}\}")


@dataclass(frozen=True, slots=True)
class Guard:
    """The protection of one text.

    `frozen_headings` are headings whose whole sections stay unchanged (`## Tools`). With `keeps_gaps` a template's
    `{{placeholders}}` stay, each between the lines it stands between. `writable_block` is the one marked block that the
    caller may rewrite; front matter and every other block stay as they are.
    """

    frozen_headings: tuple[str, ...] = ()
    keeps_gaps: bool = False
    writable_block: str | None = None

    def spans(self, text: str) -> tuple[Span, ...]:
        """Return every protected span of `text`, merged and in order. No block is writable to an edit."""
        return _merged((*protected_spans(text), *self._sections(text)))

    def kept(self, text: str) -> tuple[str, ...]:
        """Return the protected parts of `text` with their names; equal before and after if none of them changed."""
        front = front_matter_span(text).of(text)
        blocks = (
            f"{name}\0{span.of(text)}"
            for name, span in block_spans(text)
            if span.start >= len(front) and name != self.writable_block
        )
        return (front, *blocks, *(span.of(text) for span in self._sections(text)), *self.gaps(text))

    def gaps(self, text: str) -> tuple[str, ...]:
        """Return each placeholder of a template with the line before and the line after it."""
        if not self.keeps_gaps:
            return ()
        lines = text.split("\n")
        return tuple("\n".join(lines[max(0, i - 1) : i + 2]) for i, line in enumerate(lines) if _GAP.search(line))

    def _sections(self, text: str) -> tuple[Span, ...]:
        return tuple(span for _, span in section_spans(text, self.frozen_headings)) if self.frozen_headings else ()


def _merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start < merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return tuple(merged)


SKILL_GUARD = Guard()
PROMPT_GUARD = Guard(frozen_headings=("## Output format", "## Tools", "## Tree structure"), keeps_gaps=True)
