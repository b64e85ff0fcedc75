"""Putting together, out of the store, all that a diagnosis of a run looks at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.evolver.domain.case import Answered, Case
from services.evolver.domain.errors import InvalidRequest, UnknownRun
from services.evolver.domain.trace import rebuild_trace
from services.evolver.use_cases.ports import RunArchive
from services.questions import Question
from services.skills import normalise_newlines, skill_file

_NAMED = 5


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """The cases of a run that were answered, and the task type of each prediction left out as INFRA."""

    cases: tuple[Case, ...]
    infra_task_types: tuple[str, ...]
    skill_files: Mapping[str, str]


async def load_answers(
    archive: RunArchive, workspace: str, run_id: str, dataset: str, question_ids: Sequence[str]
) -> tuple[list[Answered], Mapping[str, Question]]:
    """Return the run's predictions and their questions; raises UnknownRun where a prediction asked for is missing."""
    for field, value in (("workspace", workspace), ("run_id", run_id), ("dataset", dataset)):
        if not value:
            raise InvalidRequest(f"{field} is empty", field=field)
    answers = await archive.predictions(workspace, run_id, question_ids)
    missing = sorted(set(question_ids) - {answer.question_id for answer in answers})
    if missing or not answers:
        named = ", ".join(missing[:_NAMED]) or "any question"
        raise UnknownRun(
            f"run {run_id} has no prediction of {named}", field="run_id", metadata={"missing": str(len(missing))}
        )
    return answers, await archive.questions(dataset, [answer.question_id for answer in answers])


async def load_run(
    archive: RunArchive,
    workspace: str,
    run_id: str,
    dataset: str,
    question_ids: Sequence[str],
    skills_version: str,
    max_steps: int,
) -> LoadedRun:
    """Return the run's cases. A trace without rows is rebuilt from the prediction's steps."""
    answers, questions = await load_answers(archive, workspace, run_id, dataset, question_ids)
    skills = await archive.skills(workspace, skills_version)
    answered = [answer for answer in answers if not answer.is_infra]
    traces = await archive.traces(workspace, run_id, [answer.question_id for answer in answered])
    cases = []
    for answer in answered:
        question = questions[answer.question_id]
        cases.append(
            Case(
                question,
                answer,
                traces.get(answer.question_id) or rebuild_trace(answer.steps_json),
                normalise_newlines(skills.get(skill_file(question.task_type, skills), "")),
                await archive.tree(question.video_id),
                max_steps,
            )
        )
    infra = tuple(questions[answer.question_id].task_type for answer in answers if answer.is_infra)
    return LoadedRun(tuple(cases), infra, skills)
