"""`videotree import trees`: video trees with their frames (TRN-1, AGT-3)."""

from services.questions import Fault
from services.trainer.domain.importing.errors import UnreadableSource
from services.trainer.use_cases.import_checks import fingerprint, name_fault, refuse_faults, refuse_other_trees
from services.trainer.use_cases.import_ports import Advance, FrameFile, Imported, LibraryWriter, Trees, no_progress
from services.video_tree import TreeFault, parse_tree

MAX_FRAME_BYTES = 8 * 2**20
"""What the library takes as one frame."""


async def import_trees(
    library: LibraryWriter, trees: Trees, *, skip_bad: bool = False, force: bool = False, advance: Advance = no_progress
) -> Imported:
    """Imports every tree with its frames; all trees are checked before the first is written.

    Raises FaultyImport naming each faulty video's first fault unless `skip_bad`, OtherContent when another tree is
    there without `force`, and UnreadableSource where nothing is left to import.
    """
    faults = [fault for video_id in trees.video_ids() if (fault := _fault(trees, video_id))]
    refuse_faults(tuple(faults), skip_bad=skip_bad)
    faulty = {fault.place for fault in faults}
    sound = [video_id for video_id in trees.video_ids() if _place(video_id) not in faulty]
    if not sound:
        raise UnreadableSource(f"there is no sound tree to import; the first of {len(faults)} faults: {faults[0]}")
    fingerprints = {video_id: fingerprint(trees.tree(video_id)) for video_id in sound}
    await refuse_other_trees(library, fingerprints, force=force)
    for done, video_id in enumerate(sound):
        advance(done, len(sound))
        await library.put_video(video_id, trees.tree(video_id), force=force)
        for batch in trees.frame_batches(video_id):
            await library.put_frames(video_id, batch)
    advance(len(sound), len(sound))
    return Imported(0, len(sound), tuple(faults))


def _place(video_id: str) -> str:
    return f"{video_id}/tree.json"


def _fault(trees: Trees, video_id: str) -> Fault | None:
    if reason := name_fault("the folder", video_id):
        return Fault(_place(video_id), reason)
    try:
        tree = parse_tree(trees.tree(video_id))
    except (TreeFault, UnreadableSource) as error:
        return Fault(_place(video_id), str(error))
    if tree.video_id != video_id:
        return Fault(_place(video_id), f"videoID is {tree.video_id!r}, not the folder's name")
    return next((fault for frame in trees.frames(video_id) if (fault := _frame_fault(video_id, frame))), None)


def _frame_fault(video_id: str, frame: FrameFile) -> Fault | None:
    reason = name_fault("the frame", frame.name)
    if not reason and frame.size_bytes > MAX_FRAME_BYTES:
        reason = f"frame {frame.name!r} is larger than {MAX_FRAME_BYTES // 2**20} MiB"
    if not reason and not frame.is_whole:
        reason = f"frame {frame.name!r} is no JPEG picture, or one that was cut off"
    return Fault(_place(video_id), reason) if reason else None
