"""The simulated judge and optimizer answer as the templates ask: every well formed answer is read at once."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from services.evolver.domain.case import Answered, Case
from services.evolver.domain.case_pack import PackLimits, build_case_pack
from services.evolver.domain.diagnosis import Category, Cause, Diagnosis
from services.evolver.domain.leaks import LeakIndex
from services.evolver.domain.momentum import UnitChange
from services.evolver.domain.stages import Bounds
from services.evolver.domain.targets import TargetKind, UpdateMode
from services.evolver.domain.trace import TraceStep
from services.evolver.templates import engine_files, load_templates
from services.evolver.use_cases.ask_model import AskModel
from services.evolver.use_cases.consolidate_appendix import ConsolidateAppendix
from services.evolver.use_cases.diagnose_case import DiagnoseCase
from services.evolver.use_cases.ports import ChatMessage, ModelRole, Origin, Reply
from services.evolver.use_cases.propose_edit import ProposalJob, ProposalStatus, ProposeEdit
from services.evolver.use_cases.propose_slow_update import ProposeSlowUpdate, SlowUpdateJob
from services.questions import Question, parse_question_lines
from services.simulator.domain.evolve_model import answer_as_evolve
from services.simulator.domain.judge_model import answer_as_judge
from services.skills import skill_file
from services.video_tree import parse_tree
from tests.builders.simulated_world import SAMPLE, sample_knowledge, sample_skills

TEMPLATES = load_templates(engine_files(None))
ORIGIN = Origin("w", "r")
KNOWN = sample_knowledge()
WORLD = replace(
    KNOWN.world,
    judge=replace(KNOWN.world.judge, malformed_rate=0.0),
    evolve=replace(KNOWN.world.evolve, badly_formed_rate=0.0),
)
QUESTIONS = parse_question_lines((SAMPLE / "questions.jsonl").read_bytes()).questions
SKILLS = sample_skills()


class SimulatedModel:
    """The simulator's judge and optimizer without HTTP; counts the retries it is asked for."""

    def __init__(self) -> None:
        self.calls = 0
        self.retries = 0

    async def chat(self, role: ModelRole, messages: Sequence[ChatMessage], origin: Origin) -> Reply:
        """See Model."""
        self.calls += 1
        self.retries += len(messages) > 1
        answer = answer_as_judge if role is ModelRole.JUDGE else answer_as_evolve
        wire = [{"role": message.role, "content": message.text} for message in messages]
        return Reply(answer(wire, None, WORLD, KNOWN.lexicon), "stop")


def wrong_case(question: Question) -> Case:
    """An agent that opened the first scene and its first event, and picked a wrong option."""
    tree = parse_tree((SAMPLE / "trees" / question.video_id / "tree.json").read_bytes())
    scene = tree.at_level(1)[0]
    event = tree.children(scene)[0]
    letter = next(letter for letter in question.letters if letter != question.answer)
    steps = (
        TraceStep(0, "view_node", {"node_id": scene.node_id}, "It is about something.", "Begin."),
        TraceStep(1, "view_node", {"node_id": event.node_id}, event.text, "Go down."),
        TraceStep(2, "submit_answer", {"answer": letter}, "", "So be it."),
    )
    answered = Answered(question.question_id, letter, False, "finished", (event.node_id,), "It fits.", 2)
    return Case(question, answered, steps, SKILLS[skill_file(question.task_type, SKILLS)], tree, 20)


def sampled(count: int) -> list[Question]:
    return list(QUESTIONS[:: max(1, len(QUESTIONS) // count)])[:count]


async def diagnosed(cases: Sequence[Case], model: SimulatedModel) -> list[Diagnosis]:
    waterfall = DiagnoseCase(AskModel(model, TEMPLATES, 4), Bounds())
    return [await waterfall.diagnose(case, case.question.question_id, ORIGIN) for case in cases]


async def test_sim_1_the_judge_is_read_without_a_retry_and_finds_defects() -> None:
    model = SimulatedModel()
    found = await diagnosed([wrong_case(question) for question in sampled(24)], model)
    assert (model.retries, model.calls > 24) == (0, True)
    assert {diagnosis.explanation.category for diagnosis in found} - {Category.UNDETERMINED}
    assert any(diagnosis.explanation.cause is Cause.DEFECT for diagnosis in found)
    assert sum(diagnosis.degraded for diagnosis in found) * 2 < len(found)


@pytest.mark.parametrize("mode", list(UpdateMode))
async def test_sim_1_the_optimizer_is_read_without_a_retry_and_makes_candidates(mode: UpdateMode) -> None:
    model = SimulatedModel()
    leaks = LeakIndex.of((each.text, each.options[each.letters.index(each.answer)]) for each in QUESTIONS)
    statuses = []
    for task_type in sorted({question.task_type for question in QUESTIONS}):
        cases = [wrong_case(question) for question in QUESTIONS if question.task_type == task_type][:6]
        diagnoses = {found.question_id: found for found in await diagnosed(cases, model)}
        name = skill_file(task_type, SKILLS)
        pack = build_case_pack(task_type, name, cases, diagnoses, 0, PackLimits())
        job = ProposalJob(ORIGIN, pack, SKILLS[name], 3, (), mode, TargetKind.SKILL, leaks)
        proposal = await ProposeEdit(AskModel(model, TEMPLATES, 4), 20_000, 5).propose(job)
        statuses.append(proposal.status)
        assert proposal.status is not ProposalStatus.REJECTED, proposal.errors
    assert model.retries == 0
    assert statuses.count(ProposalStatus.CANDIDATE) * 2 > len(statuses)


async def test_sim_1_blocks_are_written() -> None:
    model = SimulatedModel()
    ask = AskModel(model, TEMPLATES, 4)
    name = "action-reasoning.md"
    changes = tuple(UnitChange(f"u{i}", "Action Reasoning", i % 2 == 0, False, "why") for i in range(6))
    slow = ProposeSlowUpdate(ask, 20_000, 1500)
    update = await slow.propose(SlowUpdateJob(ORIGIN, SKILLS, changes, (), LeakIndex.of(())))
    assert update.errors == ()
    appendix = ConsolidateAppendix(ask, 20_000, 2)
    reminders = ["Open the event before the action.", "Count a second time.", "Read every option again."]
    merged = await appendix.update(SKILLS[name], reminders, 0, LeakIndex.of(()), ORIGIN)
    assert (merged.consolidated, merged.errors) == (True, ())
    assert model.retries == 0
