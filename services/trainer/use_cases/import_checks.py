"""What an import checks before it writes anything, so that none is ever half done (TRN-1)."""

import hashlib
import re
from collections.abc import Mapping, Sequence

from services.questions import Fault, Question, render_question_lines
from services.trainer.domain.importing.errors import FaultyImport, OtherContent
from services.trainer.use_cases.import_ports import LibraryWriter

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}\Z")


def refuse_faults(faults: tuple[Fault, ...], *, skip_bad: bool) -> None:
    """Raises FaultyImport with all of them, unless they are to be left out."""
    if faults and not skip_bad:
        raise FaultyImport(faults)


def name_fault(what: str, name: str) -> str:
    """What forbids `name` as the name of a video or frame in the library, empty where nothing does."""
    if _NAME.match(name) and ".." not in name:
        return ""
    allowed = "letters, digits, '.', '_' and '-', and may not begin with '.' or hold '..'"
    return f"{what} {name[:200]!r} may hold only {allowed}"


def fingerprint(content: bytes) -> str:
    """The hex SHA-256 by which the library knows a tree or a question set."""
    return hashlib.sha256(content).hexdigest()


async def refuse_other_trees(library: LibraryWriter, fingerprints: Mapping[str, str], *, force: bool) -> None:
    """Raises OtherContent when the library holds another tree of one of these videos (fingerprint by video id)."""
    if force:
        return
    held = await library.tree_fingerprints()
    clashes = [video_id for video_id, own in fingerprints.items() if held.get(video_id, own) != own]
    if clashes:
        raise OtherContent("the tree of video", clashes)


async def refuse_other_questions(
    library: LibraryWriter, dataset: str, questions: Sequence[Question], *, force: bool
) -> None:
    """Raises OtherContent when the library holds other questions under this name."""
    if force:
        return
    held = (await library.question_set_fingerprints()).get(dataset)
    if held is not None and held != fingerprint(render_question_lines(questions)):
        raise OtherContent("question set", [dataset])
