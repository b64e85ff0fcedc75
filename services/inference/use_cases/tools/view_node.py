"""`view_node(node_id, question)`."""

from collections.abc import Mapping
from typing import Any

from services.inference.domain.agent_tool_args import text_arg
from services.inference.domain.agent_view import node_text, node_view
from services.inference.use_cases.tools.tool import Condenser, find_node
from services.video_tree import VideoTree


class ViewNode:
    """Shows a node's text, condensed if it is long, with one line for each child."""

    def __init__(self, tree: VideoTree, condenser: Condenser, question: str) -> None:
        self._tree = tree
        self._condenser = condenser
        self._question = question

    async def __call__(self, args: Mapping[str, Any]) -> str:
        """See Tool. Without an own question the text is condensed for the one to be answered."""
        node = find_node(self._tree, text_arg(args, "node_id"))
        asked = text_arg(args, "question", default=self._question)
        text = await self._condenser.condensed(node_text(node), asked)
        return node_view(node, text, self._tree.children(node))
