"""What a tool is, and how long texts are condensed for a question."""

from collections.abc import Mapping
from typing import Any, Protocol

from services.inference.domain.agent_tool_args import InvalidToolCall
from services.inference.domain.chat import Message, Role
from services.inference.use_cases.metered_model import MeteredModel
from services.templates import TemplateSet
from services.video_tree import Node, VideoTree


class Tool(Protocol):
    """One tool of one question's agent."""

    async def __call__(self, args: Mapping[str, Any]) -> str:
        """What the agent is told. Raises InvalidToolCall, which costs no step; an InferenceError ends the question."""
        ...


def find_node(tree: VideoTree, node_id: str) -> Node:
    """The node of this id. Raises InvalidToolCall naming ids that begin alike."""
    node = tree.nodes.get(node_id)
    if node is None:
        raise InvalidToolCall(f"there is no node {node_id[:80]!r} in this video; ids look like {_example_ids(tree)}")
    return node


def _example_ids(tree: VideoTree) -> str:
    return ", ".join(nodes[0].node_id for level in (1, 2, 3) if (nodes := tree.at_level(level)))


class Condenser:
    """Shortens a text to what bears on a question: the `tool` role extracts, then checks its extract (AGT-2)."""

    def __init__(self, model: MeteredModel, templates: TemplateSet, above_chars: int) -> None:
        self._model = model
        self._templates = templates
        self._above_chars = above_chars

    async def condensed(self, text: str, question: str) -> str:
        """The condensed text, or the text itself where it is short enough, or the model gives no text for it."""
        if len(text) <= self._above_chars:
            return text
        extract = await self._ask(self._templates["tools.extract"].render(question=question, text=text))
        if not extract:
            return text
        checked = self._templates["tools.verify"].render(question=question, text=text, extract=extract)
        return await self._ask(checked) or text

    async def _ask(self, prompt: str) -> str:
        result = await self._model.ask(Role.TOOL, (Message("user", prompt),))
        return result.content.strip()
