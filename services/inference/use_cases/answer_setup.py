"""What the questions of one call share, and what the calls of one process share."""

from dataclasses import dataclass
from enum import StrEnum

from services.inference.domain.agent_loop import LoopLimits
from services.inference.domain.agent_skills import NO_SKILLS, SkillBook, SkillMode
from services.inference.domain.chat import JsonObject
from services.inference.use_cases.answer_ports import AnswerLog, Library, NodeSearch
from services.inference.use_cases.patience import Patience
from services.inference.use_cases.ports import ChatModel
from services.templates import Template, TemplateSet

REQUIRED_TEMPLATES = (
    "agent.direct",
    "agent.fault",
    "agent.question",
    "agent.system",
    "tools.extract",
    "tools.observe",
    "tools.verify",
)


class SolverKind(StrEnum):
    """How a question is solved."""

    TREE = "tree"
    DIRECT = "direct"


class ResponseFormat(StrEnum):
    """What an endpoint is asked to enforce on the agent's replies, as far as it can."""

    NONE = "none"
    JSON_OBJECT = "json_object"
    JSON_SCHEMA = "json_schema"

    def request_field(self, template: Template) -> JsonObject | None:
        """The request's `response_format` for replies to this template; None where nothing is asked."""
        if self is ResponseFormat.NONE or template.output_schema is None:
            return None
        if self is ResponseFormat.JSON_OBJECT:
            return {"type": "json_object"}
        name = template.name.replace(".", "_")
        return {"type": "json_schema", "json_schema": {"name": name, "schema": dict(template.output_schema)}}


@dataclass(frozen=True, slots=True)
class AgentServices:
    """What the agent of this process works with; texts longer than `condense_above_chars` are condensed."""

    model: ChatModel
    library: Library
    log: AnswerLog
    search: NodeSearch
    condense_above_chars: int
    response_format: ResponseFormat = ResponseFormat.NONE
    patience: Patience | None = None


@dataclass(frozen=True, slots=True)
class AgentSetup:
    """How the questions of one call are answered; `deadline` is loop time in seconds, `skills` is None in mode none."""

    run_id: str
    templates: TemplateSet
    skills: SkillBook | None
    skill_mode: SkillMode
    solver: SolverKind
    limits: LoopLimits
    salt: str | None
    deadline: float | None

    def skills_text(self, task_type: str) -> str:
        """What stands between the `<skills>` tags of the prompt."""
        return NO_SKILLS if self.skills is None else self.skills.prompt_text(self.skill_mode, task_type)
