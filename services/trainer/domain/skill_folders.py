"""Skills as folders with a `SKILL.md` each, the form that other agents read (`export --format agent-skills`). Pure."""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from services.skills import Skill, parse_skill

MAX_DESCRIPTION_CHARS = 1024


def skill_folders(files: Mapping[str, str]) -> dict[str, str]:
    """Relative path (`action-reasoning/SKILL.md`) to text.

    The front matter has the fields every reader knows, `name` (equal to the folder's) and `description`, and the
    task type below `metadata`. The body is unchanged. Raises SkillFormatError for a file that is no skill.
    """
    return {
        f"{name.removesuffix('.md')}/SKILL.md": _document(name.removesuffix(".md"), parse_skill(files[name]))
        for name in sorted(files)
    }


def _document(folder: str, skill: Skill) -> str:
    header = {
        "name": folder,
        "description": " ".join(skill.description.split())[:MAX_DESCRIPTION_CHARS],
        "metadata": {"task_type": skill.task_type},
    }
    front = yaml.safe_dump(header, sort_keys=False, allow_unicode=True, width=10_000)
    return f"---\n{front}---\n{skill.body}"
