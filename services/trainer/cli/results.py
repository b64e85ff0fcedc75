"""`videotree runs`, `diff`, `export`, `rollback`, `backup`, `restore`, `report`, `plan`: what came of training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from services.trainer.adapters.report_page import render_report
from services.trainer.cli import options
from services.trainer.cli.live_progress import LiveProgress
from services.trainer.cli.output import print_json, print_line, print_rows, say
from services.trainer.cli.preparing import existing_workspace
from services.trainer.cli.running import people, run_command
from services.trainer.cli.session import STORE_ONLY, Session, load_config, open_session
from services.trainer.cli.training_runs import named_or_newest, trainings
from services.trainer.domain.cost_plan import CostPerQuestion, CostPlan
from services.trainer.domain.errors import WorkspaceProblem
from services.trainer.domain.skill_folders import skill_folders
from services.trainer.use_cases.gather_report import gather_report
from services.trainer.use_cases.open_run import gather_run
from services.trainer.use_cases.plan_run import plan_run
from services.trainer.use_cases.ports import Services
from services.trainer.use_cases.rollback import roll_back

Version = Annotated[str, typer.Argument(help="A skills version, such as v3.")]


def report(
    run_id: Annotated[str | None, typer.Argument(help="The training run; the newest by default.")] = None,
    workspace: options.Workspace = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write a copy of the page here.")] = None,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Write one self-contained HTML page about a run.

    Example: videotree report demo-1 --output report.html
    """

    async def work() -> str:
        async with open_session(load_config(), data=data, needs=STORE_ONLY) as session:
            name, run = await named_or_newest(session.services, run_id, workspace)
            page = render_report(await gather_report(session.services, name, run.run_id)).encode()
            if output is not None:
                output.write_bytes(page)
            return await session.services.workspaces.write_report(name, f"{run.run_id}/report.html", page)

    path = run_command(work())
    say({"report": path}, f"report: {output or path}", as_json=as_json)


def runs(workspace: options.Workspace = None, data: options.Data = None, as_json: options.AsJson = False) -> None:
    """List the runs of a workspace, or of all.

    Example: videotree runs --workspace demo-1
    """

    async def work() -> list[dict[str, Any]]:
        async with open_session(load_config(), data=data, needs=STORE_ONLY) as session:
            names = [workspace] if workspace else await session.services.workspaces.names()
            return [
                {
                    "workspace": name,
                    "run": run.run_id,
                    "kind": run.run_kind,
                    "status": run.status,
                    "skills": run.skills_version,
                    "started": run.started_time,
                    "finished": run.finished_time,
                    "detail": run.status_detail,
                }
                for name in names
                for run in await session.services.runs.all(name)
            ]

    print_rows(run_command(work()), as_json=as_json, empty="no runs yet; start one with: videotree train --demo")


def diff(
    old: Version,
    new: Version,
    workspace: options.Workspace = None,
    prompts: Annotated[bool, typer.Option("--prompts", help="Compare prompts, not skills.")] = False,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Show what two versions differ in.

    Example: videotree diff v1 v4 --workspace demo-1
    """

    async def work() -> str:
        config = load_config({"workspace": workspace})
        async with open_session(config, data=data, needs=STORE_ONLY) as session:
            kind = "prompts" if prompts else "skills"
            name = await _readable_workspace(session, workspace)
            for version in (old, new):
                await require_version(session.services, name, kind, version)
            return await session.services.versions.diff(name, kind, old, new)

    text = run_command(work())
    say({"diff": text}, text.rstrip("\n") or f"{old} and {new} are equal", as_json=as_json)


def export(
    output: Annotated[Path, typer.Argument(help="Folder to write into; it must be empty or absent.")],
    version: Annotated[
        str | None, typer.Option("--version", help="Skills version; the current one by default.")
    ] = None,
    form: Annotated[str, typer.Option("--format", help="agent-skills (SKILL.md folders) or files.")] = "agent-skills",
    workspace: options.Workspace = None,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Write a version's skills for use elsewhere.

    Example: videotree export ./skills --format agent-skills --workspace demo-1
    """
    if form not in {"agent-skills", "files"}:
        raise typer.BadParameter(f"--format is agent-skills or files, not {form!r}")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise typer.BadParameter(f"{output} exists and is not an empty folder")

    async def work() -> dict[str, str]:
        config = load_config({"workspace": workspace})
        async with open_session(config, data=data, needs=STORE_ONLY) as session:
            name = await _readable_workspace(session, workspace)
            manifest, _ = await session.services.workspaces.get(name)
            wanted = version or manifest.current.skills
            await require_version(session.services, name, "skills", wanted)
            texts = (await session.services.versions.get(name, "skills", wanted)).texts
            return skill_folders(texts) if form == "agent-skills" else texts

    files = run_command(work())
    for name, text in files.items():
        path = output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    say({"files": sorted(files)}, f"wrote {len(files)} skills to {output}", as_json=as_json)


def rollback(
    version: Version,
    prompts: Annotated[bool, typer.Option("--prompts", help="Put prompts back, not skills.")] = False,
    workspace: options.Workspace = None,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Put an earlier version's skills or prompts back in force, as a new version.

    Example: videotree rollback v1 --workspace demo-1
    """

    async def work() -> str:
        config = load_config({"workspace": workspace})
        async with open_session(config, data=data, needs=STORE_ONLY) as session:
            kind = "prompts" if prompts else "skills"
            published, _ = await roll_back(session.services, config.workspace, version, kind)
            return published.version

    published = run_command(work())
    say({"version": published}, f"{published} holds the texts of {version} and is in force", as_json=as_json)


def backup(
    name: Annotated[str, typer.Argument(help="Name of the copy.")],
    workspace: options.Workspace = None,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Copy a workspace consistently, also while it is being trained.

    Example: videotree backup before-night --workspace demo-1
    """

    async def work() -> tuple[str, int]:
        config = load_config({"workspace": workspace})
        async with open_session(config, data=data, needs=STORE_ONLY) as session:
            manifest = await existing_workspace(session)
            copy = await session.services.workspaces.backup(manifest.name, name)
            return copy.path, copy.size_bytes

    path, size = run_command(work())
    say({"path": path, "size_bytes": size}, f"backup: {path} ({size} bytes)", as_json=as_json)


def restore(
    name: Annotated[str, typer.Argument(help="Name of the copy.")],
    workspace: Annotated[str, typer.Argument(help="Name of the workspace to make; it must not exist.")],
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Make a workspace from a copy; nothing is overwritten.

    Example: videotree restore before-night demo-1-again
    """

    async def work() -> str:
        async with open_session(load_config(), data=data, needs=STORE_ONLY) as session:
            return (await session.services.workspaces.restore(name, workspace)).name

    say({"workspace": run_command(work())}, f"restored {name} as workspace {workspace}", as_json=as_json)


def plan(
    workspace: options.Workspace = None,
    epochs: Annotated[int | None, typer.Option("--epochs", help="Passes over the diag pool.")] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", help="Diag units of one step.")] = None,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Estimate the model calls and tokens of a run before it starts.

    Example: videotree plan --workspace main --epochs 3
    """

    async def work() -> tuple[CostPlan, CostPerQuestion]:
        config = load_config({"workspace": workspace, "epochs": epochs, "batch_size": batch_size})
        async with open_session(config, data=data, needs=STORE_ONLY) as session:
            manifest = await existing_workspace(session)
            pools, _ = await session.services.workspaces.pools(config.workspace)
            baseline = manifest.baseline_run_id or pools.baseline_run_id
            if not baseline:
                raise WorkspaceProblem(f"workspace {config.workspace} has no baseline; run `videotree baseline` first")
            settings = config.training_settings()
            run = await gather_run(session.services, LiveProgress(), settings, config.workspace, "plan")
            return await plan_run(run, baseline)

    cost_plan, cost = run_command(work())
    if as_json:
        print_json({"plan": cost_plan, "per_question": cost})
        return
    rows = [{"work": each.name, "questions": each.questions, "note": each.note} for each in cost_plan.work]
    print_rows(rows, as_json=False, empty="")
    print_line(f"a question took {cost.calls:.1f} model calls and {cost.tokens:.0f} tokens in the baseline")
    print_line(f"at most {cost_plan.calls} model calls and {cost_plan.tokens} tokens; early verdicts make it less")


async def _readable_workspace(session: Session, named: str | None) -> str:
    """The workspace to read: the one named or configured, or else that of the newest training."""
    if named or session.config.source_of("workspace") != "default":
        return (await existing_workspace(session)).name
    runs_found = await trainings(session.services, await session.services.workspaces.names())
    if not runs_found:
        return session.config.workspace
    workspace, run = runs_found[-1]
    people.print(f"workspace {workspace} (of the newest training, {run.run_id})", markup=False)
    return workspace


async def require_version(services: Services, workspace: str, kind: str, version: str) -> None:
    """Raises WorkspaceProblem naming the versions that there are, when `version` isn't one of them."""
    known = [each.version for each in await services.versions.all(workspace, kind)]
    if version not in known:
        raise WorkspaceProblem(f"workspace {workspace} has no {kind} version {version}; it has {', '.join(known)}")
