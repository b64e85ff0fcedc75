"""Worlds and prompts for tests of the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from services.runtime.bundled import bundled_path
from services.simulator.adapters.world_file import load_knowledge, read_world
from services.simulator.domain.answers import Answers
from services.simulator.domain.models import Knowledge
from services.simulator.domain.words import Lexicon
from services.simulator.domain.world import World
from services.templates import TemplateSet, read_folder

SAMPLE = bundled_path("examples") / "sample"
SURE = "[agent]\nfollow_rate = 1.0\nspontaneous_rate = 0.0\nslip_rate = 0.0\nnoise = 0.0\n"


def sample_knowledge() -> Knowledge:
    """The world of the bundled sample."""
    return load_knowledge(SAMPLE / "world.toml")


def world(text: str = "") -> World:
    """The world of a TOML text."""
    return read_world(text, "test")


def knowledge(text: str = "", answers: Answers | None = None) -> Knowledge:
    """What the models know in the world of a TOML text."""
    found = world(text)
    return Knowledge(found, answers or Answers(), Lexicon(found.same_words))


def sample_skill(name: str) -> str:
    """A v1 skill of the sample."""
    return (SAMPLE / "skills" / f"{name}.md").read_text(encoding="utf-8")


def sample_skills() -> Mapping[str, str]:
    """All v1 skills of the sample by file name."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted((SAMPLE / "skills").glob("*.md"))}


def with_advice(skill: str, advice: str) -> str:
    """The skill with one list item more."""
    return skill.replace("<!-- APPENDIX_START -->", f"- {advice}\n\n<!-- APPENDIX_START -->")


def rendered(name: str, **values: str) -> str:
    """A prompt of the product with these values, as far as it has a place for them; other places stay empty."""
    template = _templates(name)[name]
    return template.render(**{place: values.get(place, "") for place in template.placeholders})


def answer_faults(name: str, answer: object) -> tuple[str, ...]:
    """What the product would find wrong with a model's answer to a prompt."""
    return _templates(name)[name].answer_faults(answer)


@cache
def _templates(name: str) -> TemplateSet:
    return TemplateSet.load(read_folder(bundled_path("prompts"), [name.split(".")[0]]), [name])


def opening(
    skill: str, question: str, options: Sequence[str], overview: str, max_steps: int = 8
) -> list[dict[str, Any]]:
    """The first two messages of an agent's conversation."""
    system = rendered("agent.system", skills=f'<skill name="s">\n{skill}\n</skill>')
    lines = "\n".join(f"{letter}. {text}" for letter, text in zip("ABCDEFGH", options, strict=False))
    first = rendered(
        "agent.question",
        question=question,
        options=lines,
        video="id: v",
        overview=overview,
        max_steps=str(max_steps),
    )
    return [{"role": "system", "content": system}, {"role": "user", "content": first}]
