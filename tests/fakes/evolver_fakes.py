"""A judge and an archive that tests fill by hand."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from services.evolver.domain.case import Answered
from services.evolver.domain.errors import UnknownRun
from services.evolver.domain.trace import TraceStep
from services.evolver.use_cases.ports import ChatMessage, ModelRole, Origin, QuestionDetails, Reply
from services.questions import Question
from services.video_tree import VideoTree

Script = Reply | str | Exception | Mapping[str, Any]


class ScriptedModel:
    """Answers by the task tag of the first message: a list of replies in order (the last one again), or a function."""

    def __init__(self, **scripts: Script | list[Script] | Callable[[str], Script]) -> None:
        self.scripts = {name.replace("__", "."): script for name, script in scripts.items()}
        self.calls: list[tuple[str, ModelRole, list[str], Origin]] = []
        self.in_flight = 0
        self.most_in_flight = 0

    async def chat(self, role: ModelRole, messages: Sequence[ChatMessage], origin: Origin) -> Reply:
        """See Model."""
        task = re.search(r"<task>(.*?)</task>", messages[0].text)
        assert task is not None
        self.calls.append((task[1], role, [message.text for message in messages], origin))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(0)
        self.in_flight -= 1
        return _reply(self._script(task[1], messages[0].text))

    def prompts(self, task: str) -> list[str]:
        """The first messages of the calls of one task."""
        return [texts[0] for name, _, texts, _ in self.calls if name == task]

    def _script(self, task: str, prompt: str) -> Script:
        script = self.scripts[task]
        if isinstance(script, list):
            return script.pop(0) if len(script) > 1 else script[0]
        return script(prompt) if callable(script) else script


def _reply(script: Script) -> Reply:
    if isinstance(script, Exception):
        raise script
    if isinstance(script, Reply):
        return script
    return Reply(script if isinstance(script, str) else json.dumps(script), "stop")


class InMemoryArchive:
    """RunArchive over dictionaries; keeps what is saved in `saved`."""

    def __init__(
        self,
        questions: Sequence[Question],
        answers: Sequence[Answered],
        traces: Mapping[str, tuple[TraceStep, ...]],
        skills: Mapping[str, str],
        trees: Mapping[str, VideoTree],
    ) -> None:
        self._questions = {question.question_id: question for question in questions}
        self._answers = list(answers)
        self._traces = traces
        self._skills = skills
        self._trees = trees
        self.saved: dict[str, QuestionDetails] = {}

    async def predictions(self, workspace: str, run_id: str, question_ids: Sequence[str]) -> list[Answered]:
        """See RunArchive."""
        return [answer for answer in self._answers if not question_ids or answer.question_id in question_ids]

    async def traces(
        self, workspace: str, run_id: str, question_ids: Sequence[str]
    ) -> Mapping[str, tuple[TraceStep, ...]]:
        """See RunArchive."""
        return {key: steps for key, steps in self._traces.items() if key in question_ids}

    async def questions(self, dataset: str, question_ids: Sequence[str]) -> Mapping[str, Question]:
        """See RunArchive."""
        missing = [each for each in question_ids if each not in self._questions]
        if missing:
            raise UnknownRun(f"no question {missing[0]}")
        return {each: self._questions[each] for each in question_ids}

    async def skills(self, workspace: str, version: str) -> Mapping[str, str]:
        """See RunArchive."""
        return self._skills

    async def prompts_sha256(self, workspace: str, version: str) -> str:
        """See RunArchive."""
        return f"prompts of {version}"

    async def tree(self, video_id: str) -> VideoTree | None:
        """See RunArchive."""
        return self._trees.get(video_id)

    async def save_details(self, workspace: str, run_id: str, details: Sequence[QuestionDetails]) -> None:
        """See RunArchive."""
        self.saved |= {detail.question_id: detail for detail in details}
