"""Gathering the questions of a file: every sound one, and every fault with its place, in file order."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from services.questions import Fault, ParsedQuestions, PlacedRecord, check_records
from services.trainer.domain.importing.flat_record import question_record
from services.trainer.domain.importing.options import UnclearAnswer


@dataclass(frozen=True, slots=True)
class Reading:
    """How a file is read.

    `known_videos`: the videos a question may name, or None where any may be named. `task_type`: that of questions
    which name none. `text_only`: the questions need no video. `durations`: only questions about videos of these
    duration categories (Video-MME: short, medium, long), empty for all. `unknown_video_remedy`: what a
    fault says to do about a video that is not known.
    """

    known_videos: Collection[str] | None = None
    task_type: str = ""
    text_only: bool = False
    durations: Collection[str] = ()
    unknown_video_remedy: str = "import its tree first"

    def wants(self, record: Mapping[str, Any]) -> bool:
        """Whether a record, of a video or of a question about it, is about a video of a wanted duration category."""
        return not self.durations or record.get("duration", record.get("duration_category")) in self.durations


@dataclass(slots=True)
class Gathering:
    """What was found so far."""

    reading: Reading
    _records: list[PlacedRecord] = field(default_factory=list)
    _faults: list[Fault] = field(default_factory=list)
    _order: dict[str, int] = field(default_factory=dict)

    def add(self, place: str, given: object, *, video_id: str = "", task_type: str = "") -> None:
        """Takes in one question as the file has it."""
        self._order.setdefault(place, len(self._order))
        if not isinstance(given, Mapping):
            self._records.append(PlacedRecord(place, given))
            return
        try:
            record = self._record(given, video_id, task_type)
        except UnclearAnswer as fault:
            self.fault(place, str(fault), str(given.get("question_id", "")))
            return
        if not record["video_id"] and not self.reading.text_only:
            self.fault(place, "video_id is missing", str(record["question_id"]))
            return
        self._records.append(PlacedRecord(place, record))

    def fault(self, place: str, reason: str, question_id: str = "") -> None:
        """Notes something that is wrong and no question."""
        self._order.setdefault(place, len(self._order))
        self._faults.append(Fault(place, reason, question_id))

    def parsed(self) -> ParsedQuestions:
        """The sound questions and all faults in file order."""
        checked = check_records(self._records, self.reading.known_videos, self.reading.unknown_video_remedy)
        faults = sorted([*self._faults, *checked.faults], key=lambda fault: self._order[fault.place])
        return ParsedQuestions(checked.questions, tuple(faults))

    def _record(self, given: Mapping[str, Any], video_id: str, task_type: str) -> dict[str, object]:
        record = question_record(
            given,
            video_id=video_id,
            task_type=task_type or self.reading.task_type,
            known_videos=self.reading.known_videos,
        )
        return record | {"video_id": ""} if self.reading.text_only else record
