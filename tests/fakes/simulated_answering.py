"""The product's own agent on the simulated models, in one process: no server, no store."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from services.inference.adapters.bm25_search import Bm25Search
from services.inference.domain.agent_loop import LoopLimits
from services.inference.domain.agent_skills import SkillBook, SkillMode
from services.inference.domain.chat import (
    CacheMode,
    CacheStatus,
    CallOrigin,
    ChatRequest,
    ChatResult,
    Completion,
    EmbedRequest,
    EmbedResult,
    ImagePart,
    Message,
    Role,
    Timing,
    Usage,
)
from services.inference.domain.prediction import AnswerRecord
from services.inference.domain.salt import seed_of_salt
from services.inference.use_cases.answer_ports import FramesMissing, LoadedTree, VersionKind
from services.inference.use_cases.answer_question import answer_question
from services.inference.use_cases.answer_setup import REQUIRED_TEMPLATES, AgentServices, AgentSetup, SolverKind
from services.questions import Question
from services.runtime.bundled import bundled_path
from services.simulator.domain.models import ChatCall, Knowledge, reply_to
from services.templates import TemplateSet, read_folder
from services.video_tree import VideoTree, parse_tree

MODELS = {Role.AGENT: "sim-agent", Role.TOOL: "sim-tool", Role.VISION: "sim-vision"}


class SimulatedModel:
    """The governed model's port, answered by the simulator's pure functions; the salt is the seed."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.knowledge = knowledge
        self.calls = 0

    async def chat(
        self,
        request: ChatRequest,
        *,
        salt: str | None = None,
        cache_mode: CacheMode = CacheMode.USE,
        deadline: float | None = None,
        origin: CallOrigin | None = None,
    ) -> ChatResult:
        """See ChatModel."""
        self.calls += 1
        messages = tuple({"role": one.role, "content": _content(one)} for one in request.messages)
        seed = None if salt is None else seed_of_salt(salt)
        call = ChatCall(MODELS[request.role], messages, seed, stream=True, include_usage=True, max_tokens=None)
        reply = reply_to(call, self.knowledge)
        usage = Usage(reply.prompt_tokens, reply.completion_tokens, reply.prompt_tokens + reply.completion_tokens)
        completion = Completion(reply.content, "", (), reply.finish_reason, usage, call.model)
        return ChatResult(completion, "call", "simulated", CacheStatus.MISS, 1, Timing(0.0))

    async def embed(
        self,
        request: EmbedRequest,
        *,
        salt: str | None = None,
        cache_mode: CacheMode = CacheMode.USE,
        deadline: float | None = None,
        origin: CallOrigin | None = None,
    ) -> EmbedResult:
        """Not served: the search uses BM25."""
        raise NotImplementedError

    def serves(self, role: Role) -> bool:
        """See ChatModel."""
        return role in MODELS


def _content(message: Message) -> object:
    if isinstance(message.content, str):
        return message.content
    return [
        {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{base64.b64encode(part.content).decode()}"}}
        if isinstance(part, ImagePart)
        else {"type": "text", "text": part.text}
        for part in message.content
    ]


class FolderLibrary:
    """Trees and frames of a folder `<video id>/tree.json`, `<video id>/frames/`, or trees given; keeps no records."""

    def __init__(self, root: Path | None = None, trees: Mapping[str, VideoTree] | None = None) -> None:
        self._root = root
        self._trees = {video_id: LoadedTree(tree, video_id) for video_id, tree in (trees or {}).items()}

    async def questions(self, dataset: str, question_ids: Sequence[str]) -> list[Question]:
        """Not used: questions are handed over."""
        raise NotImplementedError

    async def version(self, workspace: str, kind: VersionKind, version: str) -> Mapping[str, str]:
        """Not used: skills and prompts are handed over."""
        raise NotImplementedError

    async def tree(self, video_id: str) -> LoadedTree:
        """See Library."""
        if video_id not in self._trees and self._root is not None:
            tree = parse_tree((self._root / video_id / "tree.json").read_bytes())
            self._trees[video_id] = LoadedTree(tree, video_id)
        return self._trees[video_id]

    async def frames(self, video_id: str, names: Sequence[str]) -> list[bytes]:
        """See Library."""
        paths = [(self._root or Path("/nonexistent")) / video_id / "frames" / f"{name}.jpg" for name in names]
        missing = [path.stem for path in paths if not path.is_file()]
        if missing:
            raise FramesMissing(missing)
        return [path.read_bytes() for path in paths]

    async def append(self, workspace: str, record: AnswerRecord) -> None:
        """See AnswerLog."""

    async def answered(self, workspace: str, run_id: str, questions: Collection[Question]) -> list[AnswerRecord]:
        """See AnswerLog."""
        return []


async def answer_all(
    questions: Iterable[Question],
    knowledge: Knowledge,
    library: FolderLibrary,
    skills: Mapping[str, str],
    *,
    run_id: str = "run",
    max_steps: int = 10,
    skill_mode: SkillMode = SkillMode.AUTO,
) -> list[AnswerRecord]:
    """Every question answered by the product's agent with the bundled prompts; `run_id` is the salt."""
    files = read_folder(bundled_path("prompts"), ["agent", "tools"])
    templates = TemplateSet.load(files, REQUIRED_TEMPLATES)
    book = SkillBook.read(skills, {})
    limits = LoopLimits(max_steps=max_steps)
    setup = AgentSetup(run_id, templates, book, skill_mode, SolverKind.TREE, limits, run_id, None)
    services = AgentServices(SimulatedModel(knowledge), library, library, Bm25Search(), 1500)
    return [await answer_question(services, setup, "test", question) for question in questions]


def share_right(records: Iterable[AnswerRecord]) -> dict[str, float]:
    """Share of right answers by task type."""
    counts: dict[str, list[bool]] = {}
    for record in records:
        counts.setdefault(record.question.task_type, []).append(record.correct)
    return {task_type: sum(found) / len(found) for task_type, found in sorted(counts.items())}
