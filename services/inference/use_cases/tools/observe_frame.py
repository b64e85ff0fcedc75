"""`observe_frame(node_ids, question)`."""

from collections.abc import Mapping, Sequence
from typing import Any

from services.inference.domain.agent_tool_args import InvalidToolCall, text_arg, texts_arg
from services.inference.domain.agent_view import frame_lines
from services.inference.domain.chat import ImagePart, Message, Part, Role, TextPart
from services.inference.domain.errors import RequestTooLarge
from services.inference.use_cases.answer_ports import FramesMissing, Library
from services.inference.use_cases.metered_model import MeteredModel
from services.inference.use_cases.tools.tool import find_node
from services.templates import TemplateSet
from services.video_tree import EVENT, FRAME, Node, VideoTree, frame_name

_MOST_FRAMES = 4
_NO_SUBTITLE = "(none)"


class ObserveFrame:
    """Sends frames to the `vision` role with the subtitles of that time."""

    def __init__(self, tree: VideoTree, library: Library, model: MeteredModel, templates: TemplateSet) -> None:
        self._tree = tree
        self._library = library
        self._model = model
        self._templates = templates

    async def __call__(self, args: Mapping[str, Any]) -> str:
        """See Tool. The vision model's words."""
        node_ids = texts_arg(args, "node_ids", most=_MOST_FRAMES)
        question = text_arg(args, "question")
        if not self._model.serves(Role.VISION):
            raise InvalidToolCall("no model that sees pictures is configured; use the texts of the tree")
        nodes = [find_node(self._tree, node_id) for node_id in node_ids]
        frames = _frames(self._tree, nodes)
        images = await self._images(frames)
        prompt = self._templates["tools.observe"].render(
            question=question, frames=frame_lines(frames), subtitle=_subtitles([*nodes, *frames])
        )
        content: tuple[Part, ...] = (TextPart(prompt), *(ImagePart(image) for image in images))
        try:
            result = await self._model.ask(Role.VISION, (Message("user", content),))
        except RequestTooLarge as error:
            raise InvalidToolCall("these frames are too large together; look at fewer of them") from error
        return result.content.strip() or "The model that sees pictures said nothing about these frames."

    async def _images(self, frames: Sequence[Node]) -> list[bytes]:
        names = [frame_name(self._tree.video_id, frame.node_id) for frame in frames]
        try:
            return await self._library.frames(self._tree.video_id, names)
        except FramesMissing as missing:
            raise InvalidToolCall(f"{missing}; use the texts of the tree") from missing


def _frames(tree: VideoTree, nodes: Sequence[Node]) -> list[Node]:
    """The L3 nodes asked for, or up to four of one event's, evenly spaced."""
    if all(node.level == FRAME for node in nodes):
        return list(nodes)
    if len(nodes) > 1 or nodes[0].level != EVENT:
        raise InvalidToolCall(f"observe_frame takes 1 to {_MOST_FRAMES} frames (L3) or exactly one event (L2)")
    children = tree.children(nodes[0])
    if not children:
        raise InvalidToolCall(f"the event {nodes[0].node_id!r} has no frames")
    return _evenly_spaced(children)


def _evenly_spaced(frames: list[Node]) -> list[Node]:
    if len(frames) <= _MOST_FRAMES:
        return frames
    last = len(frames) - 1
    return [frames[round(position * last / (_MOST_FRAMES - 1))] for position in range(_MOST_FRAMES)]


def _subtitles(nodes: Sequence[Node]) -> str:
    return "\n".join(dict.fromkeys(node.subtitle for node in nodes if node.subtitle)) or _NO_SUBTITLE
