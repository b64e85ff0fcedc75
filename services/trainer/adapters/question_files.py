"""Question files and folders on disk, read according to what they are (TRN-1)."""

from pathlib import Path

from services.questions import ParsedQuestions
from services.trainer.adapters.parquet_file import read_rows
from services.trainer.domain.importing.errors import UnreadableSource
from services.trainer.domain.importing.gathering import Reading
from services.trainer.domain.importing.per_video_lists import parse_per_video_lists
from services.trainer.domain.importing.questions_jsonl import parse_questions_jsonl
from services.trainer.domain.importing.videomme import parse_videomme_json, parse_videomme_rows

_KINDS = ".jsonl, .json, .parquet or a folder of <video_id>.json"


def read_questions(path: Path, reading: Reading) -> ParsedQuestions:
    """The questions and faults of a file or folder. Raises UnreadableSource.

    A folder holds one list for each video; `.jsonl` one question a line; `.json` Video-MME's forms or any flat list;
    `.parquet` the columns of the data hub.
    """
    if path.is_dir():
        return parse_per_video_lists(_folder(path), reading)
    suffix = path.suffix.lower()
    if suffix in (".jsonl", ".ndjson"):
        return parse_questions_jsonl(_content(path), reading)
    if suffix == ".json":
        return parse_videomme_json(_content(path), reading)
    if suffix == ".parquet":
        return parse_videomme_rows(read_rows(path), reading)
    hint = "; NExT-QA's CSV is read by `videotree import nextqa`" if suffix == ".csv" else ""
    raise UnreadableSource(f"{path}: not a kind of question file that is known ({_KINDS}){hint}")


def _folder(path: Path) -> dict[str, bytes]:
    files = sorted(path.glob("*.json"))
    if not files:
        raise UnreadableSource(f"{path}: the folder holds no <video_id>.json")
    return {file.stem: _content(file) for file in files}


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableSource(f"{path}: {error.strerror or error}") from error
