"""Which skills are in force for a question, and how the prompt shows them (AGT-4)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from html import escape
from typing import Final

from services.skills import DEFAULT_SKILL_FILE, MARKERS, Skill, SkillFormatError, parse_skill, skill_file

ALWAYS: Final = "*"
NO_SKILLS: Final = "There are no skills for this question."


class SkillMode(StrEnum):
    """How the agent comes by skills."""

    AUTO = "auto"
    MANUAL = "manual"
    NONE = "none"


class UnusableSkills(ValueError):
    """The skills of a call can't be used; the message names the file."""


@dataclass(frozen=True, slots=True)
class SkillBook:
    """The skills of one call, by file name."""

    skills: Mapping[str, Skill]

    @classmethod
    def read(cls, files: Mapping[str, str], overrides: Mapping[str, str]) -> "SkillBook":
        """The version's files with the overrides in their place.

        Raises UnusableSkills for a file that is no skill, and where no default strategy is left.
        """
        merged = {**files, **overrides}
        if DEFAULT_SKILL_FILE not in merged:
            raise UnusableSkills(f"{DEFAULT_SKILL_FILE} is missing")
        return cls({name: _parsed(name, merged[name]) for name in sorted(merged)})

    def in_force(self, task_type: str) -> list[Skill]:
        """The skills that apply to every type (front matter `task_type: "*"`), then the type's own or the default."""
        own = skill_file(task_type, self.skills)
        always = [skill for name, skill in self.skills.items() if skill.task_type == ALWAYS and name != own]
        return [*always, self.skills[own]]

    def named(self, name: str) -> Skill | None:
        """The skill of this name or file name."""
        wanted = name.strip().removesuffix(".md").casefold()
        for file_name, skill in self.skills.items():
            if wanted in (file_name.removesuffix(".md").casefold(), skill.name.casefold()):
                return skill
        return None

    def prompt_text(self, mode: SkillMode, task_type: str) -> str:
        """What stands between the `<skills>` tags of a prompt."""
        if mode is SkillMode.NONE:
            return NO_SKILLS
        if mode is SkillMode.MANUAL:
            return catalogue(self.skills)
        return "\n\n".join(map(skill_block, self.in_force(task_type)))


@lru_cache(maxsize=1024)
def _parsed(name: str, text: str) -> Skill:
    """A gate asks with the same texts again and again, and reading front matter costs most of a millisecond."""
    try:
        return parse_skill(text)
    except SkillFormatError as error:
        raise UnusableSkills(f"{name} is no skill: {error}") from error


def skill_block(skill: Skill) -> str:
    """A skill's body in its tag, without the marker lines of the protected blocks."""
    lines: Iterable[str] = (line for line in skill.body.splitlines() if line.strip() not in MARKERS)
    return f'<skill name="{escape(skill.name)}">\n' + "\n".join(lines).strip() + "\n</skill>"


def catalogue(skills: Mapping[str, Skill]) -> str:
    """One line for each skill, for `read_skill`."""
    lines = [f"- {file_name.removesuffix('.md')}: {skill.description}" for file_name, skill in skills.items()]
    return "\n".join(["A catalogue; read the skill that fits the question with `read_skill`:", *lines])
