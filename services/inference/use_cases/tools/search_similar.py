"""`search_similar(query, question, k=5)`."""

from collections.abc import Mapping
from typing import Any

from services.inference.domain.agent_tool_args import text_arg, whole_number_arg
from services.inference.domain.agent_view import node_line
from services.inference.domain.chat import CallOrigin
from services.inference.use_cases.answer_ports import LoadedTree, NodeSearch
from services.inference.use_cases.ports import NO_ORIGIN

_DEFAULT_HITS = 5
_MOST_HITS = 20
_LINE_CHARS = 300
_NOTHING = "Nothing in this video matches these words. Try other words."


class SearchSimilar:
    """Lists the nodes whose text is closest to a query."""

    def __init__(self, loaded: LoadedTree, search: NodeSearch, origin: CallOrigin = NO_ORIGIN) -> None:
        self._loaded = loaded
        self._search = search
        self._origin = origin

    async def __call__(self, args: Mapping[str, Any]) -> str:
        """See Tool. One line a hit, best first."""
        query = text_arg(args, "query")
        most = whole_number_arg(args, "k", default=_DEFAULT_HITS, low=1, high=_MOST_HITS)
        hits = await self._search.search(self._loaded, query, most, origin=self._origin)
        lines = [node_line(hit.node, _LINE_CHARS, f"(score {hit.score:.3g})") for hit in hits]
        return "\n".join(lines) or _NOTHING
