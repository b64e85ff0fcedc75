"""`read_skill(name)`, in manual mode."""

from collections.abc import Mapping
from typing import Any

from services.inference.domain.agent_skills import SkillBook, skill_block
from services.inference.domain.agent_tool_args import InvalidToolCall, text_arg


class ReadSkill:
    """Shows the full text of one skill of the catalogue."""

    def __init__(self, skills: SkillBook) -> None:
        self._skills = skills

    async def __call__(self, args: Mapping[str, Any]) -> str:
        """See Tool."""
        name = text_arg(args, "name")
        skill = self._skills.named(name)
        if skill is None:
            known = ", ".join(file_name.removesuffix(".md") for file_name in self._skills.skills)
            raise InvalidToolCall(f"there is no skill {name[:80]!r}; there are: {known}")
        return skill_block(skill)
