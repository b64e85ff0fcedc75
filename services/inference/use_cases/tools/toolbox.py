"""The tools of one question."""

from collections.abc import Mapping

from services.inference.domain.agent_skills import SkillMode
from services.inference.use_cases.answer_ports import LoadedTree
from services.inference.use_cases.answer_setup import AgentServices, AgentSetup
from services.inference.use_cases.metered_model import MeteredModel
from services.inference.use_cases.tools.observe_frame import ObserveFrame
from services.inference.use_cases.tools.read_skill import ReadSkill
from services.inference.use_cases.tools.search_similar import SearchSimilar
from services.inference.use_cases.tools.tool import Condenser, Tool
from services.inference.use_cases.tools.view_node import ViewNode


def toolbox(
    services: AgentServices, setup: AgentSetup, model: MeteredModel, loaded: LoadedTree, question_text: str
) -> Mapping[str, Tool]:
    """Name -> tool; `read_skill` is there only in manual mode."""
    condenser = Condenser(model, setup.templates, services.condense_above_chars)
    tools: dict[str, Tool] = {
        "view_node": ViewNode(loaded.tree, condenser, question_text),
        "search_similar": SearchSimilar(loaded, services.search, model.origin),
        "observe_frame": ObserveFrame(loaded.tree, services.library, model, setup.templates),
    }
    if setup.skill_mode is SkillMode.MANUAL and setup.skills is not None:
        tools["read_skill"] = ReadSkill(setup.skills)
    return tools
