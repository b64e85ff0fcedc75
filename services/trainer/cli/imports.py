"""`videotree import ...`: questions, trees, NExT-QA, the bundled sample."""

from __future__ import annotations

import re
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from services.runtime.bundled import bundled_path
from services.runtime.channels import open_channel
from services.templates import parse_template
from services.trainer.adapters.bundled_files import read_sample
from services.trainer.adapters.calls import Caller
from services.trainer.adapters.caption_archive import open_captions
from services.trainer.adapters.caption_summaries import CaptionSummaries
from services.trainer.adapters.question_files import read_questions
from services.trainer.adapters.tree_folders import TreeFolders
from services.trainer.cli import options
from services.trainer.cli.live_progress import LiveProgress
from services.trainer.cli.output import print_json, print_line
from services.trainer.cli.running import people, run_command
from services.trainer.cli.session import STORE_ONLY, Session, load_config, open_session, sample_path
from services.trainer.domain.importing.errors import FaultyImport, UnreadableSource
from services.trainer.use_cases.import_captions import import_captions
from services.trainer.use_cases.import_nextqa import import_nextqa
from services.trainer.use_cases.import_ports import Imported
from services.trainer.use_cases.import_questions import import_questions
from services.trainer.use_cases.import_trees import import_trees
from services.trainer.use_cases.load_sample import import_sample

_SET_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}\Z")


def _set_name(value: str) -> str:
    if not _SET_NAME.match(value) or ".." in value:
        raise typer.BadParameter(f"{value!r} must begin with a-z or 0-9 and hold only a-z, 0-9, '.', '_' and '-'")
    return value


app = typer.Typer(help="Import questions and video trees into the library.", no_args_is_help=True)

SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Import the rest, and say what was left out.")]
Videos = Annotated[int | None, typer.Option("--videos", min=1, help="Keep the questions of so many drawn videos.")]
DrawSeed = Annotated[int, typer.Option("--random-seed", min=0, help="Seed of the draw of --videos.")]
SetName = Annotated[str, typer.Option("--dataset", help="Name of the question set in the library.", callback=_set_name)]

Summarise = Annotated[bool, typer.Option("--summarise", help="Let the tool model write the summaries.")]


@app.command("questions")
def questions(
    file: Annotated[Path, typer.Argument(help="JSONL, JSON or parquet file, or a folder of <video_id>.json lists.")],
    dataset: SetName,
    task_type: Annotated[str, typer.Option("--task-type", help="Type of questions that name none.")] = "",
    text_only: Annotated[bool, typer.Option("--text-only", help="The questions need no video.")] = False,
    duration: Annotated[list[str] | None, typer.Option("--duration", help="Keep Video-MME videos of it only.")] = None,
    videos: Videos = None,
    random_seed: DrawSeed = 0,
    skip_bad: SkipBad = False,
    force: options.Force = False,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Import a question set; every fault is listed by line, and nothing is imported if there is one.

    Example: videotree import questions videomme.parquet --dataset videomme --duration long
    """

    async def work() -> Imported:
        async with open_session(load_config(), data=data, needs=STORE_ONLY) as session:
            return await import_questions(
                session.services.library,
                lambda reading: read_questions(file, reading),
                dataset,
                task_type=task_type,
                text_only=text_only,
                durations=duration or (),
                videos=videos,
                draw_seed=random_seed,
                skip_bad=skip_bad,
                force=force,
            )

    _report(work(), as_json=as_json)


@app.command("trees")
def trees(
    folder: Annotated[Path, typer.Argument(help="Folder with one folder a video: tree.json and frames/.")],
    skip_bad: SkipBad = False,
    force: options.Force = False,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Import video trees with their frames; all are checked before the first is written.

    Example: videotree import trees ./videos
    """

    async def work() -> Imported:
        async with open_session(load_config(), data=data, needs=STORE_ONLY) as session:
            with LiveProgress() as progress:
                progress.phase("trees")
                return await import_trees(
                    session.services.library,
                    TreeFolders(folder),
                    skip_bad=skip_bad,
                    force=force,
                    advance=progress.advanced,
                )

    _report(work(), as_json=as_json)


@app.command("captions")
def captions(
    source: Annotated[Path, typer.Argument(help="Per-second captions, <video>.json each: a ZIP or a folder.")],
    summarise: Summarise = False,
    skip_bad: SkipBad = False,
    force: options.Force = False,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Make video trees from captions, {"0": "what is seen in second 0", ...} a video, and import them.

    Example: videotree import captions captions.zip
    """

    async def work() -> Imported:
        async with (
            open_session(load_config(), data=data, needs=_needs(summarise)) as session,
            AsyncExitStack() as stack,
        ):
            archive = stack.enter_context(open_captions(source))
            summariser = await _summariser(session, stack) if summarise else None
            progress = stack.enter_context(LiveProgress())
            progress.phase("trees")
            return await import_captions(
                session.services.library,
                archive,
                summariser=summariser,
                skip_bad=skip_bad,
                force=force,
                advance=progress.advanced,
            )

    _report(work(), as_json=as_json)


@app.command("nextqa")
def nextqa(
    questions_csv: Annotated[Path, typer.Option("--questions", help="The CSV of questions.")],
    captions_source: Annotated[Path, typer.Option("--captions", help="Per-second captions: a ZIP or a folder.")],
    dataset: SetName = "nextqa",
    summarise: Summarise = False,
    videos: Videos = None,
    random_seed: DrawSeed = 0,
    skip_bad: SkipBad = False,
    force: options.Force = False,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Import NExT-QA with the trees that its captions make.

    Example: videotree import nextqa --questions val.csv --captions captions_1fps.zip

    Example: videotree import nextqa --questions val.csv --captions captions_1fps.zip --videos 150 --dataset nextqa-150
    """

    async def work() -> Imported:
        async with (
            open_session(load_config(), data=data, needs=_needs(summarise)) as session,
            AsyncExitStack() as stack,
        ):
            content = _content(questions_csv)
            archive = stack.enter_context(open_captions(captions_source))
            summariser = await _summariser(session, stack) if summarise else None
            progress = stack.enter_context(LiveProgress())
            progress.phase("trees")
            return await import_nextqa(
                session.services.library,
                content,
                archive,
                dataset,
                summariser=summariser,
                videos=videos,
                draw_seed=random_seed,
                skip_bad=skip_bad,
                force=force,
                advance=progress.advanced,
            )

    _report(work(), as_json=as_json)


@app.command("sample")
def sample(data: options.Data = None, as_json: options.AsJson = False) -> None:
    """Import the bundled sample: generated videos with trees, and questions of six types.

    Example: videotree import sample
    """

    async def work() -> Imported:
        async with open_session(load_config(), data=data, needs=STORE_ONLY) as session:
            sample_questions, sample_trees = read_sample(sample_path())
            await import_sample(session.services.library, sample_questions, sample_trees)
            return Imported(len(sample_questions), len(sample_trees.video_ids()))

    _report(work(), as_json=as_json)


def _needs(summarise: bool) -> tuple[str, ...]:
    return ("store", "inference") if summarise else STORE_ONLY


async def _summariser(session: Session, stack: AsyncExitStack) -> CaptionSummaries:
    path = bundled_path("prompts") / "tools" / "summarise.md"
    template = parse_template("tools.summarise", path.read_text(encoding="utf-8"))
    address = session.addresses["inference"]
    channel = await stack.enter_async_context(open_channel(address))
    return CaptionSummaries(channel, Caller("inference", address, session.config.call_timeout_seconds), template)


def _report(work: Coroutine[Any, Any, Imported], *, as_json: bool) -> None:
    async def listing_faults() -> Imported:
        try:
            return await work
        except FaultyImport as refusal:
            for fault in refusal.faults:
                people.print(str(fault), markup=False)
            raise

    imported = run_command(listing_faults())
    if as_json:
        print_json({**_plain(imported), "left_out": [str(fault) for fault in imported.left_out]})
        return
    for fault in imported.left_out:
        people.print(f"left out: {fault}", markup=False)
    print_line(imported_line(imported))


def imported_line(imported: Imported) -> str:
    """What was imported, without counts of what there was none of."""
    counts = {"questions": imported.question_count, "videos": imported.video_count}
    return f"imported {' and '.join(f'{count} {what}' for what, count in counts.items() if count)}"


def _plain(imported: Imported) -> dict[str, int]:
    return {"questions": imported.question_count, "videos": imported.video_count}


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableSource(f"{path}: {error.strerror or error}") from error
