"""Library and AnswerLog in memory."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from services.inference.domain.agent_errors import NotFound
from services.inference.domain.prediction import AnswerRecord
from services.inference.use_cases.answer_ports import FramesMissing, LoadedTree, VersionKind, VideoUnusable
from services.questions import Question
from services.runtime.bundled import bundled_path
from services.templates import read_folder
from tests.builders.videos import loaded_kitchen


def skill(name: str, task_type: str, body: str) -> str:
    """A skill file."""
    return f"---\nname: {name}\ndescription: about {name}\ntask_type: {task_type!r}\n---\n{body}\n"


class InMemoryAnswering:
    """Holds questions, the kitchen, versions and what was appended."""

    def __init__(self, questions: Sequence[Question]) -> None:
        self.known = {question.question_id: question for question in questions}
        self.trees: dict[str, LoadedTree] = {"v1": loaded_kitchen()}
        self.jpegs: dict[str, bytes] = {}
        self.versions: dict[tuple[VersionKind, str], Mapping[str, str]] = {
            (VersionKind.PROMPTS, "v1"): read_folder(bundled_path("prompts"), ["agent", "tools"]),
            (VersionKind.SKILLS, "v1"): {
                "default-strategy.md": skill("default-strategy", "default", "Look everywhere."),
                "counting-problem.md": skill("counting-problem", "Counting Problem", "Count twice."),
            },
        }
        self.records: dict[tuple[str, str, str], AnswerRecord] = {}
        self.refusals: list[Exception] = []

    async def questions(self, dataset: str, question_ids: Sequence[str]) -> list[Question]:
        """See Library."""
        missing = [question_id for question_id in question_ids if question_id not in self.known]
        if missing:
            raise NotFound(f"no questions {missing}")
        return [self.known[question_id] for question_id in question_ids]

    async def version(self, workspace: str, kind: VersionKind, version: str) -> Mapping[str, str]:
        """See Library."""
        if (kind, version) not in self.versions:
            raise NotFound(f"no {kind} {version}")
        return self.versions[kind, version]

    async def tree(self, video_id: str) -> LoadedTree:
        """See Library."""
        if video_id not in self.trees:
            raise VideoUnusable(f"the store has no tree of video {video_id!r}")
        return self.trees[video_id]

    async def frames(self, video_id: str, names: Sequence[str]) -> list[bytes]:
        """See Library."""
        missing = [name for name in names if name not in self.jpegs]
        if missing:
            raise FramesMissing(missing)
        return [self.jpegs[name] for name in names]

    async def append(self, workspace: str, record: AnswerRecord) -> None:
        """See AnswerLog; refuses once for each of `refusals`."""
        if self.refusals:
            raise self.refusals.pop(0)
        self.records[workspace, record.run_id, record.question.question_id] = record

    async def answered(self, workspace: str, run_id: str, questions: Collection[Question]) -> list[AnswerRecord]:
        """See AnswerLog."""
        found = [self.records.get((workspace, run_id, question.question_id)) for question in questions]
        return [
            replace(record, transcript=())
            for record in found
            if record is not None and not record.submission.stop_reason.is_infra
        ]
