"""The prompts of judge and optimizer: which task they set, and the message that holds its values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from services.simulator.domain.conversation import content_text

_TASK = re.compile(r"<task>([a-z_.]+)</task>")
_RETRY = "evolve.retry"


@dataclass(frozen=True, slots=True)
class Task:
    """A task: its name, the text that sets it, and the whole conversation (which differs when it is asked again)."""

    name: str
    text: str
    identity: str


def read_task(messages: Sequence[dict[str, Any]]) -> Task:
    """The task a conversation sets first; its name is empty where no message names one."""
    texts = [content_text(message) for message in messages]
    for text in texts:
        found = _TASK.search(text)
        if found and found[1] != _RETRY:
            return Task(found[1], text, "\x1e".join(texts))
    return Task("", "\n".join(texts), "\x1e".join(texts))


def cut_off(answer: str) -> str:
    """The beginning of an answer, broken in the middle."""
    return answer[: max(1, len(answer) * 2 // 3)]
