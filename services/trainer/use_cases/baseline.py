"""A workspace's first skills, and every question answered once with them (TRN-2)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.trainer.domain.answering import AnswerJob
from services.trainer.domain.errors import ServiceFailed, WorkspaceProblem
from services.trainer.domain.runs import Run
from services.trainer.domain.settings import TrainingSettings
from services.trainer.domain.unit_results import INFRA_STOP_REASONS
from services.trainer.domain.workspaces import Manifest
from services.trainer.use_cases.ports import Progress, Services
from services.trainer.use_cases.training_run import answer_all

BASELINE_RUN = "baseline"


@dataclass(frozen=True, slots=True)
class BaselineResult:
    """Questions by how they ended; `resumed` of them were answered by an earlier call of the command."""

    right: int
    wrong: int
    infra: int
    resumed: int
    model_calls: int
    tokens: int

    @property
    def total(self) -> int:
        """Questions asked."""
        return self.right + self.wrong + self.infra


async def choose_dataset(services: Services, wanted: str) -> str:
    """The question set to work on: the one named, or the only one there is. Raises WorkspaceProblem."""
    names = [each.dataset for each in await services.library.datasets()]
    if wanted:
        if wanted not in names:
            known = ", ".join(names) or "none"
            raise WorkspaceProblem(f"the library has no question set {wanted} (it has: {known}); import it first")
        return wanted
    if len(names) == 1:
        return names[0]
    if not names:
        raise WorkspaceProblem("the library is empty; import a question set first: `videotree import questions --help`")
    raise WorkspaceProblem(f"name the question set with --dataset: {', '.join(names)}")


async def ensure_workspace(
    services: Services, name: str, dataset: str, skills: Mapping[str, str], prompts: Mapping[str, str]
) -> Manifest:
    """The workspace, made from these files when there is none. Raises WorkspaceProblem if it uses another dataset."""
    try:
        manifest, _ = await services.workspaces.get(name)
    except ServiceFailed as failure:
        if failure.code != "NOT_FOUND":
            raise
        return await services.workspaces.create_from_files(name, dataset, skills, prompts)
    if manifest.current.questions != dataset:
        raise WorkspaceProblem(
            f"workspace {name} works on {manifest.current.questions}, not on {dataset}; name another --workspace"
        )
    return manifest


async def baseline_settings(services: Services, workspace: str) -> Mapping[str, Any] | None:
    """The settings with which the workspace's baseline was begun, None where it has none."""
    for run in await services.runs.all(workspace, BASELINE_RUN):
        if run.run_id == BASELINE_RUN:
            settings: Mapping[str, Any] = json.loads(run.config_json or "{}")
            return settings
    return None


async def run_baseline(
    services: Services, progress: Progress, settings: TrainingSettings, manifest: Manifest
) -> BaselineResult:
    """Answers every question of the workspace's set that has no answer yet, without a salt.

    Raises EndpointDown when every call fails, WorkspaceProblem when it was begun with other settings.
    """
    questions = await services.library.questions(manifest.current.questions)
    how = {"solver": settings.solver, "max_steps": settings.max_steps}
    await _refuse_another_way(services, manifest.name, how)
    run = Run(
        BASELINE_RUN,
        "baseline",
        config_json=json.dumps(how),
        skills_version="v1",
        prompts_version="v1",
    )
    await services.runs.register(manifest.name, run)
    progress.phase("baseline", len(questions))
    job = AnswerJob(
        workspace=manifest.name,
        dataset=manifest.current.questions,
        question_ids=tuple(question.question_id for question in questions),
        skills_version="v1",
        prompts_version="v1",
        run_id=BASELINE_RUN,
        salt=None,
        solver=settings.solver,
        skill_mode=settings.skill_mode,
        max_steps=settings.max_steps,
        concurrency=settings.concurrency,
        resume=True,
    )
    answers = await answer_all(services.agent, progress, job)
    await services.runs.finish(manifest.name, BASELINE_RUN, "finished", f"{len(answers)} questions")
    infra = sum(each.stop_reason in INFRA_STOP_REASONS for each in answers)
    right = sum(each.correct for each in answers if each.stop_reason not in INFRA_STOP_REASONS)
    return BaselineResult(
        right=right,
        wrong=len(answers) - right - infra,
        infra=infra,
        resumed=sum(each.resumed for each in answers),
        model_calls=sum(each.model_calls for each in answers if not each.resumed),
        tokens=sum(each.prompt_tokens + each.completion_tokens for each in answers if not each.resumed),
    )


async def _refuse_another_way(services: Services, workspace: str, how: Mapping[str, Any]) -> None:
    """What the earlier answers were given under must hold for the others too: they are compared with each other."""
    begun = await baseline_settings(services, workspace) or {}
    changed = [f"{key} {begun[key]}, now {now}" for key, now in how.items() if begun.get(key, now) != now]
    if changed:
        raise WorkspaceProblem(
            f"the baseline of workspace {workspace} was begun with {'; '.join(changed)}; "
            "set it back, or name another --workspace"
        )
