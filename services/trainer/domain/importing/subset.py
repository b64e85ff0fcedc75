"""A part of a question set by seeded draw of whole videos, for a first look at small cost."""

import hashlib
from collections.abc import Sequence

from services.questions import Question


def drawn_videos(questions: Sequence[Question], count: int, seed: int) -> tuple[Question, ...]:
    """The questions of `count` videos in file order; all of them where there are fewer videos.

    Where questions have no video, units are drawn. A draw of more videos holds every draw of fewer with the same seed,
    so that a trial can grow without losing what was answered.
    """
    groups = {question.group_id for question in questions}
    drawn = set(sorted(groups, key=lambda group: _draw_key(seed, group))[:count])
    return tuple(question for question in questions if question.group_id in drawn)


def _draw_key(seed: int, group: str) -> str:
    return hashlib.sha256(f"subset:{seed}:{group}".encode()).hexdigest()
