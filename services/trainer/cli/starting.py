"""Where a training starts from: what the command line says, the seed, the workspace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from services.trainer.cli.live_progress import LiveProgress
from services.trainer.cli.preparing import prepare_sample_seed, prepare_seed
from services.trainer.cli.running import people
from services.trainer.cli.session import Session
from services.trainer.domain.errors import WorkspaceProblem
from services.trainer.use_cases.ports import Services


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """What the command line says besides settings."""

    seed: str | None
    demo: bool
    simulated: bool
    world: Path | None
    data: Path | None
    run_id: str | None
    resume: str | None
    workspace: str | None
    as_json: bool


async def seed_to_train_from(session: Session, chosen: TrainOptions, progress: LiveProgress) -> str:
    """The seed to train from, empty for a workspace that is ready; made now where none is there and none was named.

    A seed that the configuration names is made; one that the command line names must exist.
    """
    services, config = session.services, session.config
    if chosen.demo:
        return await prepare_sample_seed(session, progress)
    seeds = [seed.name for seed in await services.workspaces.seeds()]
    if config.seed_name in seeds or chosen.workspace:
        return config.seed_name
    if chosen.seed:
        known = f"there are: {', '.join(seeds)}" if seeds else "there is none yet"
        raise WorkspaceProblem(f"there is no seed {chosen.seed} ({known}); make it with: videotree seed create NAME")
    if config.seed_name:
        return await prepare_seed(session, progress, config.seed_name)
    if len(seeds) == 1:
        people.print(f"training from the only seed there is: {seeds[0]}", markup=False)
        return seeds[0]
    if not seeds:
        return await prepare_seed(session, progress, config.workspace)
    raise WorkspaceProblem(f"name the seed with --seed ({', '.join(seeds)}) or a workspace with --workspace")


async def ensure_workspace(services: Services, progress: LiveProgress, workspace: str, seed: str) -> None:
    """Makes the workspace where there is none. Raises WorkspaceProblem when it was made from another seed."""
    if workspace not in await services.workspaces.names():
        await services.workspaces.create_from_seed(workspace, seed, force=False)
        progress.note(f"workspace {workspace} made from seed {seed}")
        return
    manifest, _ = await services.workspaces.get(workspace)
    if manifest.seed != seed:
        origin = f"seed {manifest.seed}" if manifest.seed else "no seed"
        raise WorkspaceProblem(
            f"workspace {workspace} was made from {origin}, not from {seed}; name another --workspace"
        )
