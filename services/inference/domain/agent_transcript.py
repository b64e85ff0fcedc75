"""What is kept of a conversation: the rows of the trace, and `steps_json`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from services.questions import storable_text

_LONGEST_TEXT_CHARS = 60_000
_CUT_MARK = " … [cut]"


class EntryKind(StrEnum):
    """What a reply of the agent led to."""

    OBSERVATION = "observation"
    """A tool call that succeeded; `output` is what it answered."""
    INVALID = "invalid"
    """A tool call that could not be carried out; `output` is the fault."""
    UNPARSABLE = "unparsable"
    """A reply that could not be read; `thought` is the reply, `output` the fault."""
    ANSWER = "answer"
    """The submitted answer."""


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One reply of the agent and what came of it; `step` is its place in the conversation, from 0."""

    step: int
    kind: EntryKind
    tool: str
    args: Mapping[str, Any]
    output: str
    thought: str

    @property
    def is_step(self) -> bool:
        """Whether this reply used up one of the steps."""
        return self.kind is EntryKind.OBSERVATION

    @property
    def args_json(self) -> str:
        """The arguments as a JSON object that can be stored; arguments that are too long are cut, marked by `cut`."""
        text = storable_text(json.dumps(self.args, ensure_ascii=False, default=str))
        if len(text) <= _LONGEST_TEXT_CHARS:
            return text
        return json.dumps({"cut": text[:_LONGEST_TEXT_CHARS]}, ensure_ascii=False)

    @property
    def stored_output(self) -> str:
        """The output as it is stored; a fault stands in `<fault>` tags."""
        if self.kind in (EntryKind.INVALID, EntryKind.UNPARSABLE):
            return bounded(f"<fault>{self.output}</fault>")
        return bounded(self.output)


def bounded(text: str) -> str:
    """The text without unstorable characters, cut to 60,000 characters with the cut marked."""
    clean = storable_text(text)
    return clean if len(clean) <= _LONGEST_TEXT_CHARS else clean[:_LONGEST_TEXT_CHARS] + _CUT_MARK


def steps_json(entries: Sequence[TranscriptEntry]) -> str:
    """All turns as a JSON array of {step, kind, tool, args, output, thought}: the trace can be rebuilt from it."""
    return json.dumps(
        [
            {
                "step": entry.step,
                "kind": entry.kind.value,
                "tool": storable_text(entry.tool),
                "args": json.loads(entry.args_json),
                "output": entry.stored_output,
                "thought": bounded(entry.thought),
            }
            for entry in entries
        ],
        ensure_ascii=False,
    )
