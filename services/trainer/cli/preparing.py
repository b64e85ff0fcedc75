"""What `baseline`, `diagnose`, `split`, `seed` and the demo have in common."""

from __future__ import annotations

from services.runtime.bundled import bundled_path
from services.trainer.adapters.bundled_files import read_prompts, read_sample, read_skills, ready_skills
from services.trainer.cli.session import Session, sample_path
from services.trainer.domain.errors import WorkspaceProblem
from services.trainer.domain.workspaces import Manifest
from services.trainer.use_cases.baseline import BASELINE_RUN, choose_dataset, ensure_workspace, run_baseline
from services.trainer.use_cases.diagnose_baseline import diagnose_baseline
from services.trainer.use_cases.freeze_split import FrozenSplit, freeze_split
from services.trainer.use_cases.load_sample import SAMPLE, import_sample
from services.trainer.use_cases.ports import Progress

DEMO_SETTINGS: dict[str, object] = {
    "dataset": SAMPLE,
    "seed_name": SAMPLE,
    "workspace": SAMPLE,
    "epochs": 1,
    "batch_size": 60,
    "max_steps_per_epoch": 2,
    "test_size": 108,
    "val_ratio": 0.4,
    "val_wrong_min": 20,
    "gate_cooldown": 0,
    "concurrency": 32,
}
"""The settings of `train --demo`: small enough to end in a minute, large enough for verdicts to mean something."""


async def prepare_workspace(session: Session) -> Manifest:
    """The configured workspace, made with ready v1 skills and prompts when there is none."""
    config = session.config
    dataset = await choose_dataset(session.services, config.dataset)
    types = {question.task_type for question in await session.services.library.questions(dataset)}
    skills = config.skills_dir or ready_skills(bundled_path("examples"), types)
    prompts = config.prompts_dir or bundled_path("prompts")
    return await ensure_workspace(
        session.services, config.workspace, dataset, read_skills(skills), read_prompts(prompts)
    )


async def existing_workspace(session: Session) -> Manifest:
    """The configured workspace. Raises WorkspaceProblem when there is none."""
    name = session.config.workspace
    names = await session.services.workspaces.names()
    if name not in names:
        known = f"there are: {', '.join(names)}" if names else "there is none yet"
        raise WorkspaceProblem(f"there is no workspace {name} ({known}); `videotree baseline` makes it")
    manifest, _ = await session.services.workspaces.get(name)
    return manifest


async def prepare_seed(session: Session, progress: Progress, name: str) -> str:
    """A seed of the configured workspace: baseline, diagnosis, split; what is done already is not done again."""
    services, config = session.services, session.config
    manifest = await prepare_workspace(session)
    baseline = await run_baseline(services, progress, config.training_settings(), manifest)
    progress.note(f"baseline: {baseline.right} of {baseline.total} right, {baseline.infra} without a result")
    offline = await diagnose_baseline(services, progress, manifest, retry_uncertain=False)
    progress.note(f"offline diagnosis: {offline.diagnosed} wrong answers, tiers {dict(offline.tiers)}")
    if not manifest.pools_sha256:
        frozen = await freeze_split(services, manifest, config.split_parameters, force=False, leave_out_infra=True)
        progress.note(describe_split(frozen))
    await services.workspaces.init_seed(name, manifest.name, BASELINE_RUN, "v1", "v1", force=False)
    return name


async def prepare_sample_seed(session: Session, progress: Progress) -> str:
    """The seed of the bundled sample; made from scratch where it doesn't exist yet, and taken up where it broke off."""
    if SAMPLE in {seed.name for seed in await session.services.workspaces.seeds()}:
        return SAMPLE
    questions, trees = read_sample(sample_path())
    await import_sample(session.services.library, questions, trees)
    return await prepare_seed(session, progress, SAMPLE)


def describe_split(frozen: FrozenSplit) -> str:
    """The pools in one line."""
    counts = frozen.split.counts
    pools = ", ".join(f"{name} {each.questions} ({each.wrong} wrong)" for name, each in counts.items())
    return f"split: {pools}"
