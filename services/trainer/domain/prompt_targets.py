"""Which prompt a step tries to improve, and under what bar (EVO-12). Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from services.trainer.domain.cooldown import on_cooldown
from services.trainer.domain.gate_round import VerdictParameters

SKILLS_TARGET = "skills"
TARGETS = (SKILLS_TARGET, "system", "tools")
"""What can be evolved, in the order in which a run remembers it."""

_SYSTEM_FILES = {"tree": "agent.system.md", "direct": "agent.direct.md"}
_TOOL_FILES = ("tools.extract.md", "tools.verify.md", "tools.observe.md")


@dataclass(frozen=True, slots=True)
class PromptTarget:
    """A prompt that may be evolved: its file, and its kind as the evolver names it (system or tool)."""

    file: str
    kind: str

    @property
    def gate_name(self) -> str:
        """What stands where a skill has its task type: in gates, reports, cooldowns and the memory of refusals."""
        return f"prompt {self.file.removesuffix('.md')}"


def prompt_targets(targets: Collection[str], solver: str) -> tuple[PromptTarget, ...]:
    """The prompts that `targets` names, as far as the solver reads them: the direct one has no tools."""
    found = [PromptTarget(_SYSTEM_FILES[solver], "system")] if "system" in targets else []
    if "tools" in targets and solver == "tree":
        found += [PromptTarget(name, "tool") for name in _TOOL_FILES]
    return tuple(found)


def due_prompt(
    targets: Sequence[PromptTarget], every: int, cooldowns: Mapping[str, int], global_step: int
) -> PromptTarget | None:
    """The prompt whose turn it is in this step; None in most steps, or while all of them cool down.

    Every `every` steps one prompt is tried, the targets taking turns; one that cools down leaves its turn to the next.
    """
    turn, rest = divmod(global_step + 1, every)
    if rest or not targets:
        return None
    first = (turn - 1) % len(targets)
    ordered = (*targets[first:], *targets[:first])
    return next((each for each in ordered if not on_cooldown(cooldowns, each.gate_name, global_step)), None)


def confirmed_only(parameters: VerdictParameters) -> VerdictParameters:
    """The parameters under which a gate confirms or rejects: its provisional bar is as good as the confirming one.

    So it also stops as futile once the confirming bar is out of reach.
    """
    return replace(parameters, e_provisional=math.nextafter(parameters.e_confirm, 0.0))
