"""`videotree import captions`: video trees made from a caption a second (TRN-1)."""

import asyncio
from collections.abc import Mapping

from services.questions import Fault
from services.trainer.domain.importing.captions_tree import CaptionFault, captions_tree, parse_captions
from services.trainer.domain.importing.errors import UnreadableSource
from services.trainer.use_cases.import_checks import fingerprint, name_fault, refuse_faults, refuse_other_trees
from services.trainer.use_cases.import_ports import (
    Advance,
    Captions,
    Imported,
    LibraryWriter,
    Summariser,
    no_progress,
)
from services.trainer.use_cases.summarise_tree import summarise_tree
from services.video_tree import render_tree

_VIDEOS_AT_ONCE = 8


async def import_captions(
    library: LibraryWriter,
    captions: Captions,
    *,
    summariser: Summariser | None = None,
    skip_bad: bool = False,
    force: bool = False,
    advance: Advance = no_progress,
) -> Imported:
    """Imports a tree for each video that has captions; all trees are made before the first is written.

    Summaries are extractive unless a summariser is given. Raises FaultyImport with all faults unless `skip_bad`,
    OtherContent when another tree is there without `force`, and UnreadableSource where nothing is left to import.
    """
    sound, faults = read_captions(captions)
    refuse_faults(faults, skip_bad=skip_bad)
    if not sound:
        raise UnreadableSource("there are no captions to import")
    trees = await make_trees(sound, summariser, advance)
    await write_trees(library, trees, force=force)
    return Imported(0, len(trees), faults)


def read_captions(captions: Captions) -> tuple[dict[str, dict[int, str]], tuple[Fault, ...]]:
    """The captions of each video that has sound ones, and a fault for each other."""
    sound: dict[str, dict[int, str]] = {}
    faults: list[Fault] = []
    for video_id in sorted(captions.video_ids()):
        try:
            if reason := name_fault("the video id", video_id):
                raise CaptionFault(reason)
            sound[video_id] = parse_captions(captions.read(video_id))
        except (CaptionFault, UnreadableSource) as error:
            faults.append(Fault(f"captions of {video_id}", str(error)))
    return sound, tuple(faults)


async def make_trees(
    captions: Mapping[str, dict[int, str]], summariser: Summariser | None, advance: Advance
) -> dict[str, bytes]:
    """The `tree.json` of each video, a few at a time; the first failure ends the others. Raises ServiceFailed."""
    slots = asyncio.Semaphore(_VIDEOS_AT_ONCE)
    trees: dict[str, bytes] = {}

    async def make_one(video_id: str, of_video: dict[int, str]) -> None:
        async with slots:
            tree = await asyncio.to_thread(captions_tree, video_id, of_video)
            if summariser is not None:
                tree = await summarise_tree(tree, summariser)
        trees[video_id] = render_tree(tree)
        advance(len(trees), len(captions))

    try:
        async with asyncio.TaskGroup() as group:
            for video_id, of_video in captions.items():
                group.create_task(make_one(video_id, of_video))
    except* Exception as failures:
        raise failures.exceptions[0] from None
    return {video_id: trees[video_id] for video_id in captions}


async def write_trees(library: LibraryWriter, trees: Mapping[str, bytes], *, force: bool) -> None:
    """Writes the trees. Raises OtherContent before the first write when another tree is there without `force`."""
    fingerprints = {video_id: fingerprint(content) for video_id, content in trees.items()}
    await refuse_other_trees(library, fingerprints, force=force)
    for video_id, content in trees.items():
        await library.put_video(video_id, content, force=force)
