"""Writes the bundled sample: video trees and questions whose answers follow from the trees.

    python examples/sample/generate.py [--check]

The same seed gives the same bytes. `--check` writes nothing and exits 1 if the committed files differ.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parents[1]))
    sys.path.insert(0, str(HERE))

from sample_questions import questions_of  # noqa: E402 - the path is set above
from sample_videos import Story, make_video  # noqa: E402

from services.questions import Question, render_question_lines  # noqa: E402
from services.video_tree import render_tree  # noqa: E402

SEED = 20261129
VIDEOS_PER_STORY = 4


def sample_files(seed: int = SEED) -> Mapping[str, bytes]:
    """Every generated file by its path relative to this folder."""
    stories = tomllib.loads((HERE / "stories.toml").read_text(encoding="utf-8"))["story"]
    files: dict[str, bytes] = {}
    questions: list[Question] = []
    for record in stories:
        story = Story.from_record(record)
        for number in range(1, VIDEOS_PER_STORY + 1):
            video = make_video(story, f"{story.name}_{number:02d}", seed)
            files[f"trees/{video.video_id}/tree.json"] = render_tree(video.tree)
            for name, picture in video.pictures.items():
                files[f"trees/{video.video_id}/frames/{name}"] = picture
            questions += questions_of(video, seed)
    files["questions.jsonl"] = render_question_lines(questions)
    return files


def stale_files(files: Mapping[str, bytes]) -> list[str]:
    """Paths whose committed content differs from the generated one, is missing, or should not be there."""
    present = {str(path.relative_to(HERE)) for path in (HERE / "trees").rglob("*") if path.is_file()}
    wrong = [
        name for name, content in files.items() if not (HERE / name).is_file() or (HERE / name).read_bytes() != content
    ]
    return sorted(set(wrong) | (present - set(files)))


def main() -> int:
    """Writes or checks the files; 0 when all is well, 1 when `--check` found a difference."""
    parser = argparse.ArgumentParser(description="Generate the bundled sample.")
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if the files are stale")
    arguments = parser.parse_args()
    files = sample_files()
    stale = stale_files(files)
    if arguments.check:
        sys.stderr.write("".join(f"stale: {name}\n" for name in stale))
        return 1 if stale else 0
    for name in stale:
        path = HERE / name
        if name not in files:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[name])
    sys.stderr.write(f"{len(files)} files, {len(stale)} written\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
