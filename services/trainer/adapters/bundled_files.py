"""Skills, prompts and sample data as files: those that come with the project, or a person's own."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from services.questions import Question, parse_question_lines
from services.skills import DEFAULT_SKILL_FILE, slug
from services.trainer.adapters.tree_folders import TreeFolders
from services.trainer.domain.errors import TrainerError

VERSIONED_PROMPTS = ("agent", "tools")
"""Folders of prompts that belong to a run's versions; the others belong to the engine (EVO-1)."""


def read_skills(folder: Path) -> dict[str, str]:
    """The skill files of a folder by name. Raises TrainerError when it lacks the default strategy."""
    files = _markdown(folder)
    if DEFAULT_SKILL_FILE not in files:
        raise TrainerError(f"{folder} holds no {DEFAULT_SKILL_FILE}, which serves types without a skill of their own")
    return files


def ready_skills(examples: Path, task_types: Collection[str]) -> Path:
    """The folder of bundled v1 skills made for these task types. Raises TrainerError when none covers them all."""
    wanted = {f"{slug(task_type)}.md" for task_type in task_types}
    for folder in sorted(examples.glob("*/skills")):
        if wanted <= {path.name for path in folder.glob("*.md")}:
            return folder
    raise TrainerError(f"no ready skills for {', '.join(sorted(task_types))}; name a folder of skills with --skills")


def read_prompts(folder: Path) -> dict[str, str]:
    """The agent's and tools' prompts of a folder, named as a version keeps them: `agent.system.md`."""
    return {
        f"{part}.{name}": text for part in VERSIONED_PROMPTS for name, text in sorted(_markdown(folder / part).items())
    }


def read_sample(folder: Path) -> tuple[list[Question], TreeFolders]:
    """The questions of a sample folder and its videos. Raises TrainerError for a faulty question file."""
    trees = TreeFolders(folder / "trees")
    parsed = parse_question_lines((folder / "questions.jsonl").read_bytes(), trees.video_ids())
    if parsed.faults:
        raise TrainerError(f"{folder / 'questions.jsonl'}: {parsed.faults[0]}")
    return list(parsed.questions), trees


def _markdown(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        raise TrainerError(f"{folder} is no folder")
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}
