"""Finding training runs among all workspaces, and a name for the next one."""

from __future__ import annotations

from collections.abc import Sequence

from services.trainer.domain.errors import WorkspaceProblem
from services.trainer.domain.runs import Run
from services.trainer.use_cases.open_run import TRAIN_KIND
from services.trainer.use_cases.ports import Services


async def find_run(services: Services, run_id: str, workspace: str | None) -> tuple[str, Run]:
    """The workspace that holds a training run, and the run. Raises WorkspaceProblem when there is none."""
    names: Sequence[str] = [workspace] if workspace else await services.workspaces.names()
    for name in names:
        for run in await services.runs.all(name, TRAIN_KIND):
            if run.run_id == run_id:
                return name, run
    raise WorkspaceProblem(f"there is no training run {run_id}; see `videotree runs`")


async def named_or_newest(services: Services, run_id: str | None, workspace: str | None) -> tuple[str, Run]:
    """The workspace and run of that name, or of the newest training. Raises WorkspaceProblem when there is none."""
    if run_id is not None:
        return await find_run(services, run_id, workspace)
    found = await trainings(services, [workspace] if workspace else await services.workspaces.names())
    if not found:
        raise WorkspaceProblem("there is no training run yet; start one with: videotree train --demo")
    return found[-1]


async def trainings(services: Services, workspaces: Sequence[str]) -> list[tuple[str, Run]]:
    """Training runs with their workspaces, the newest last."""
    found = [(name, run) for name in workspaces for run in await services.runs.all(name, TRAIN_KIND)]
    return sorted(found, key=lambda each: (str(each[1].started_time), each[1].run_id))


async def free_run_id(services: Services, stem: str) -> str:
    """The first of `stem-1`, `stem-2`, ... that names neither a workspace nor a training."""
    taken = set(await services.workspaces.names())
    for workspace in list(taken):
        taken |= {run.run_id for run in await services.runs.all(workspace, TRAIN_KIND)}
    number = 1
    while f"{stem}-{number}" in taken:
        number += 1
    return f"{stem}-{number}"
