"""`videotree baseline`, `diagnose`, `split`, `seed`: what comes before the first training step."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from services.trainer.cli import options
from services.trainer.cli.live_progress import LiveProgress
from services.trainer.cli.output import print_json, print_line, print_rows, shown
from services.trainer.cli.preparing import existing_workspace, prepare_workspace
from services.trainer.cli.running import run_command
from services.trainer.cli.session import STORE_ONLY, chosen_world, load_config, open_session
from services.trainer.domain.split import PoolCounts
from services.trainer.domain.workspaces import Seed
from services.trainer.use_cases.baseline import BASELINE_RUN, BaselineResult, run_baseline
from services.trainer.use_cases.diagnose_baseline import OfflineDiagnosis, diagnose_baseline
from services.trainer.use_cases.freeze_split import FrozenSplit, freeze_split

seed_app = typer.Typer(help="Frozen starting points for workspaces.", no_args_is_help=True)


def baseline(
    workspace: options.Workspace = None,
    dataset: options.Dataset = None,
    skills: Annotated[Path | None, typer.Option("--skills", help="Folder of v1 skills of a new workspace.")] = None,
    prompts: Annotated[Path | None, typer.Option("--prompts", help="Folder with agent/ and tools/ prompts.")] = None,
    concurrency: Annotated[int | None, typer.Option("--concurrency", help="Questions in flight at once.")] = None,
    simulated: options.Simulated = False,
    world: options.World = None,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Answer every question once with the v1 skills; a second call goes on where the first one broke off.

    Example: videotree baseline --dataset nextqa
    """
    overrides = {
        "workspace": workspace,
        "dataset": dataset,
        "skills_dir": skills,
        "prompts_dir": prompts,
        "concurrency": concurrency,
    }

    async def work() -> BaselineResult:
        config = load_config(overrides)
        async with open_session(config, data=data, world=chosen_world(simulated=simulated, world=world)) as session:
            manifest = await prepare_workspace(session)
            with LiveProgress() as progress:
                answering = run_baseline(session.services, progress, config.training_settings(), manifest)
                return await session.while_serving(answering)

    result = run_command(work())
    if as_json:
        print_json({**asdict(result), "total": result.total})
        return
    print_line(
        f"baseline: {result.right} right, {result.wrong} wrong, {result.infra} without a result "
        f"of {result.total} questions ({result.resumed} were answered before)"
    )
    if result.infra:
        print_line("run `videotree baseline` again to retry those without a result")


def diagnose(
    workspace: options.Workspace = None,
    retry_uncertain: Annotated[bool, typer.Option("--retry-uncertain", help="Do the uncertain ones again.")] = False,
    simulated: options.Simulated = False,
    world: options.World = None,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Diagnose the baseline's wrong answers; those already diagnosed are skipped.

    Example: videotree diagnose --retry-uncertain
    """

    async def work() -> OfflineDiagnosis:
        config = load_config({"workspace": workspace})
        async with open_session(config, data=data, world=chosen_world(simulated=simulated, world=world)) as session:
            manifest = await existing_workspace(session)
            with LiveProgress() as progress:
                diagnosing = diagnose_baseline(session.services, progress, manifest, retry_uncertain=retry_uncertain)
                return await session.while_serving(diagnosing)

    result = run_command(work())
    if as_json:
        print_json(result)
        return
    tiers = ", ".join(f"{tier} {count}" for tier, count in result.tiers.items()) or "none"
    print_line(f"diagnosed {result.diagnosed} wrong answers, {result.known} known before; tiers: {tiers}")
    if result.degraded:
        print_line(f"{result.degraded} of them without a usable judgement; repeat with --retry-uncertain")


def split(
    workspace: options.Workspace = None,
    test_size: Annotated[int | None, typer.Option("--test-size", help="Questions held out for the test.")] = None,
    val_ratio: Annotated[float | None, typer.Option("--val-ratio", help="Val's share of the rest.")] = None,
    val_wrong_min: Annotated[int | None, typer.Option("--val-wrong-min", help="Wrong answers val must hold.")] = None,
    random_seed: Annotated[int | None, typer.Option("--random-seed", help="Seed of the test draw.")] = None,
    leave_out_infra: Annotated[
        bool, typer.Option("--leave-out-infra", help="Leave out questions without a usable baseline answer.")
    ] = False,
    force: options.Force = False,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Split the answered questions into diag, val and test, and freeze that.

    Whole groups are drawn: videos, or units where questions have no video.

    Example: videotree split --test-size 600 --val-ratio 0.4
    """
    overrides = {
        "workspace": workspace,
        "test_size": test_size,
        "val_ratio": val_ratio,
        "val_wrong_min": val_wrong_min,
        "seed": random_seed,
    }

    async def work() -> FrozenSplit:
        config = load_config(overrides)
        async with open_session(config, data=data, needs=STORE_ONLY) as session:
            manifest = await existing_workspace(session)
            return await freeze_split(
                session.services,
                manifest,
                config.split_parameters,
                force=force,
                leave_out_infra=leave_out_infra,
            )

    frozen = run_command(work())
    if as_json:
        print_json(frozen)
        return
    rows = [{"pool": name, **_pool_row(counts)} for name, counts in frozen.split.counts.items()]
    print_rows(rows, as_json=False, empty="")
    print_line(f"T2 captured by diag: {shown(frozen.split.t2_captured)}; left out: {len(frozen.left_out)} questions")
    kept = f", old split kept as {frozen.backup_name}" if frozen.backup_name else ""
    print_line(f"frozen as {frozen.pools_sha256[:12]}{kept}; next: videotree seed create NAME")


@seed_app.command("create")
def seed_create(
    name: Annotated[str, typer.Argument(help="Name of the seed.")],
    workspace: options.Workspace = None,
    force: options.Force = False,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Freeze a workspace's baseline, split, skills and prompts as a starting point.

    Example: videotree seed create nextqa
    """

    async def work() -> tuple[Seed, int]:
        config = load_config({"workspace": workspace})
        async with open_session(config, data=data, needs=STORE_ONLY) as session:
            await existing_workspace(session)
            return await session.services.workspaces.init_seed(
                name, config.workspace, BASELINE_RUN, "v1", "v1", force=force
            )

    seed, duplicates = run_command(work())
    if as_json:
        print_json({**asdict(seed), "duplicates_dropped": duplicates})
        return
    print_line(f"seed {seed.name}: {seed.prediction_count} baseline answers on {seed.dataset}")
    print_line(f"next: videotree train --seed {seed.name}")


@seed_app.command("list")
def seed_list(data: options.Data = None, as_json: options.AsJson = False) -> None:
    """List the seeds.

    Example: videotree seed list
    """

    async def work() -> list[Seed]:
        async with open_session(load_config(), data=data, needs=STORE_ONLY) as session:
            return await session.services.workspaces.seeds()

    rows = [
        {
            "seed": seed.name,
            "dataset": seed.dataset,
            "baseline": seed.baseline_run_id,
            "answers": seed.prediction_count,
            "pools": seed.pools_sha256[:12] or None,
        }
        for seed in run_command(work())
    ]
    print_rows(rows, as_json=as_json, empty="no seeds yet; make one with: videotree seed create NAME")


def _pool_row(counts: PoolCounts) -> dict[str, object]:
    return {
        "questions": counts.questions,
        "units": counts.units,
        "groups": counts.videos,
        "wrong": counts.wrong,
        "T2": counts.t2,
    }
