"""A batch of questions, answered as wide as allowed and streamed in order of completion (AGT-6)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from services.inference.domain.agent_errors import UnusableVersion
from services.inference.domain.agent_loop import LoopLimits
from services.inference.domain.agent_skills import SkillBook, SkillMode, UnusableSkills
from services.inference.use_cases.answer_ports import Answered, VersionKind
from services.inference.use_cases.answer_question import answer_question
from services.inference.use_cases.answer_setup import REQUIRED_TEMPLATES, AgentServices, AgentSetup, SolverKind
from services.questions import Question
from services.templates import MissingTemplatesError, TemplateFormatError, TemplateSet


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """What AnswerQuestions is asked; `concurrency` questions are worked on at once, `deadline` is loop time."""

    workspace: str
    dataset: str
    question_ids: tuple[str, ...]
    run_id: str
    skills_version: str
    prompts_version: str
    concurrency: int
    skill_overrides: Mapping[str, str] = field(default_factory=dict)
    prompt_overrides: Mapping[str, str] = field(default_factory=dict)
    salt: str | None = None
    solver: SolverKind = SolverKind.TREE
    skill_mode: SkillMode = SkillMode.AUTO
    limits: LoopLimits = field(default_factory=LoopLimits)
    resume: bool = False
    deadline: float | None = None


@lru_cache(maxsize=64)
def _templates(files: frozenset[tuple[str, str]]) -> TemplateSet:
    """The templates of a prompts version, checked once however many calls use it."""
    return TemplateSet.load(dict(files), REQUIRED_TEMPLATES)


def _overridden(published: Mapping[str, str], request: AnswerRequest) -> Mapping[str, str]:
    """The prompts with the overrides in their place; one that takes no file's place would change nothing, unnoticed."""
    for name in request.prompt_overrides:
        if name not in published:
            message = f"prompts {request.prompts_version} has no file {name}"
            raise UnusableVersion(message, field=f"prompt_overrides[{name}]")
    return {**published, **request.prompt_overrides}


class AnswerQuestions:
    """Answers questions; every answer is durable in the store before it is yielded."""

    def __init__(self, services: AgentServices) -> None:
        self._services = services

    async def __call__(self, request: AnswerRequest) -> AsyncGenerator[Answered, None]:
        """The answers in order of completion, one for each question; with `resume` those of the store first.

        Closing the iterator starts no further question and cancels those under way; what was stored stays. Raises
        NotFound, UnusableVersion or StoreUnavailable for what concerns the whole batch.
        """
        questions = await self._services.library.questions(request.dataset, request.question_ids)
        setup = await self._setup(request)
        stored = await self._stored(request, questions)
        for answered in stored:
            yield answered
        done = {answered.record.question.question_id for answered in stored}
        open_questions = [question for question in questions if question.question_id not in done]
        async with self._working(request, setup, open_questions) as outcomes:
            for _ in open_questions:
                outcome = await outcomes.get()
                if isinstance(outcome, Exception):
                    raise outcome
                yield outcome

    async def _stored(self, request: AnswerRequest, questions: Sequence[Question]) -> list[Answered]:
        if not request.resume:
            return []
        records = await self._services.log.answered(request.workspace, request.run_id, questions)
        return [Answered(record, resumed=True) for record in records]

    async def _setup(self, request: AnswerRequest) -> AgentSetup:
        published = await self._services.library.version(
            request.workspace, VersionKind.PROMPTS, request.prompts_version
        )
        prompts = _overridden(published, request)
        try:
            templates = _templates(frozenset(prompts.items()))
            skills = await self._skills(request)
        except (MissingTemplatesError, TemplateFormatError) as error:
            field = "prompt_overrides" if request.prompt_overrides else "prompts_version"
            raise UnusableVersion(f"prompts {request.prompts_version}: {error}", field=field) from error
        except UnusableSkills as error:
            raise UnusableVersion(f"skills {request.skills_version}: {error}", field="skills") from error
        return AgentSetup(
            run_id=request.run_id,
            templates=templates,
            skills=skills,
            skill_mode=request.skill_mode,
            solver=request.solver,
            limits=request.limits,
            salt=request.salt,
            deadline=request.deadline,
        )

    async def _skills(self, request: AnswerRequest) -> SkillBook | None:
        if request.skill_mode is SkillMode.NONE:
            return None
        files = await self._services.library.version(request.workspace, VersionKind.SKILLS, request.skills_version)
        return SkillBook.read(files, request.skill_overrides)

    @asynccontextmanager
    async def _working(
        self, request: AnswerRequest, setup: AgentSetup, questions: Sequence[Question]
    ) -> AsyncIterator[asyncio.Queue[Answered | Exception]]:
        """Workers that fill a queue, one outcome a question; leaving cancels those still at work."""
        outcomes: asyncio.Queue[Answered | Exception] = asyncio.Queue(maxsize=request.concurrency)
        waiting = iter(questions)
        width = min(request.concurrency, len(questions))
        workers = [asyncio.create_task(self._work(request.workspace, setup, waiting, outcomes)) for _ in range(width)]
        try:
            yield outcomes
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(
        self,
        workspace: str,
        setup: AgentSetup,
        waiting: Iterator[Question],
        outcomes: asyncio.Queue[Answered | Exception],
    ) -> None:
        for question in waiting:
            try:
                record = await answer_question(self._services, setup, workspace, question)
            except Exception as error:  # raised again where the queue is read
                await outcomes.put(error)
                return
            await outcomes.put(Answered(record))
