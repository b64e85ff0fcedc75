"""AGT-1, AGT-4, AGT-5, AGT-6: a batch of questions over a scripted model and stores in memory."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from services.inference.adapters.bm25_search import Bm25Search
from services.inference.domain.agent_errors import NotFound, RecordRefused, StoreUnavailable, UnusableVersion
from services.inference.domain.agent_loop import LoopLimits, StopReason
from services.inference.domain.agent_skills import SkillMode
from services.inference.domain.agent_transcript import EntryKind
from services.inference.domain.errors import EndpointsUnavailable
from services.inference.domain.prediction import AnswerRecord
from services.inference.use_cases.answer_ports import Answered, VersionKind
from services.inference.use_cases.answer_questions import AnswerQuestions, AnswerRequest
from services.inference.use_cases.answer_setup import AgentServices, SolverKind
from services.questions import Question
from tests.builders.videos import question
from tests.fakes.in_memory_answering import InMemoryAnswering, skill
from tests.fakes.scripted_model import Reply, ScriptedModel, acts, completion

ANSWER = acts("submit_answer", answer="B", evidence=["v1_L2_0"], reasoning="Three are washed.")
VIEW = acts("view_node", node_id="v1_L2_0", question="How many?")


class Room:
    """The use case with its fakes."""

    def __init__(self, questions: Sequence[Question], model: ScriptedModel) -> None:
        self.store = InMemoryAnswering(questions)
        self.model = model
        services = AgentServices(model, self.store, self.store, Bm25Search(), condense_above_chars=10_000)
        self.answer = AnswerQuestions(services)

    def request(self, **changes: Any) -> AnswerRequest:
        base = AnswerRequest(
            workspace="w",
            dataset="d",
            question_ids=tuple(self.store.known),
            run_id="r",
            skills_version="v1",
            prompts_version="v1",
            concurrency=4,
            salt="r:e0",
            limits=LoopLimits(max_steps=3),
        )
        return replace(base, **changes)

    async def run(self, **changes: Any) -> list[Answered]:
        return [answered async for answered in self.answer(self.request(**changes))]


async def one(replies: Sequence[Reply], asked: Question | None = None, **changes: Any) -> AnswerRecord:
    room = Room([asked or question()], ScriptedModel(replies))
    (answered,) = await room.run(**changes)
    assert room.store.records["w", "r", answered.record.question.question_id] == answered.record
    return answered.record


async def test_agt_1_a_finished_question_is_stored_with_its_whole_trace() -> None:
    record = await one([VIEW, ANSWER])
    assert record.correct
    assert record.submission.stop_reason is StopReason.FINISHED
    assert (record.submission.evidence, record.submission.reasoning) == (("v1_L2_0",), "Three are washed.")
    assert (record.submission.steps_used, record.spent.model_calls, record.spent.prompt_tokens) == (1, 2, 20)
    assert [(entry.step, entry.kind, entry.tool) for entry in record.transcript] == [
        (0, EntryKind.OBSERVATION, "view_node"),
        (1, EntryKind.ANSWER, "submit_answer"),
    ]
    assert "three carrots" in record.transcript[0].output


async def test_agt_1_no_answer_within_the_budget_is_wrong() -> None:
    record = await one([VIEW])
    assert record.submission.stop_reason is StopReason.BUDGET_EXCEEDED
    assert (record.submission.steps_used, record.spent.model_calls, record.correct) == (3, 4, False)


async def test_agt_1_three_unreadable_replies_in_a_row_are_a_parse_error() -> None:
    record = await one(["no", VIEW, "no", "no", "no"])
    assert record.submission.stop_reason is StopReason.PARSE_ERROR
    assert [entry.kind for entry in record.transcript].count(EntryKind.UNPARSABLE) == 4
    assert record.submission.steps_used == 1


async def test_agt_1_a_reply_cut_off_at_the_token_limit_is_unreadable() -> None:
    record = await one([completion(ANSWER, "length"), ANSWER])
    assert [entry.kind for entry in record.transcript] == [EntryKind.UNPARSABLE, EntryKind.ANSWER]


async def test_agt_1_a_failed_model_call_is_an_error_that_keeps_the_trace_so_far() -> None:
    record = await one([VIEW, EndpointsUnavailable("HTTP 503", wait_seconds=1)])
    assert record.submission.stop_reason is StopReason.ERROR
    assert "HTTP 503" in record.submission.error_detail
    assert (len(record.transcript), record.submission.steps_used, record.spent.model_calls) == (1, 1, 2)


async def test_agt_1_invalid_calls_are_reported_free_of_charge_and_bounded() -> None:
    wrong = [
        acts("fly"),
        acts("view_node", node_id="nowhere"),
        acts("view_node"),
        acts("search_similar", query="x", k=99),
        acts("observe_frame", node_ids=["v1_L1_0"], question="?"),
        acts("read_skill", name="x"),
    ]
    record = await one([*wrong, VIEW, ANSWER])
    assert [entry.kind for entry in record.transcript] == [EntryKind.INVALID] * 6 + [
        EntryKind.OBSERVATION,
        EntryKind.ANSWER,
    ]
    assert record.submission.steps_used == 1
    endless = await one([acts("fly")])
    assert endless.submission.stop_reason is StopReason.BUDGET_EXCEEDED
    assert endless.spent.model_calls == 11


async def test_agt_1_the_model_is_told_of_faults_and_of_the_steps_left() -> None:
    room = Room([question()], ScriptedModel([acts("fly"), VIEW, ANSWER]))
    await room.run()
    told = [message.content for message in room.model.requests[-1].messages if message.role == "user"]
    assert "there is no tool 'fly'" in str(told[1])
    assert str(told[2]).startswith('<observation tool="view_node" step="1" steps_left="2">\n<node id="v1_L2_0"')


@pytest.mark.parametrize("answer", [["B"], {"answer": "b. because"}, "three", "Three.", "(b)"])
async def test_agt_5_odd_shapes_of_a_right_answer_are_right(answer: object) -> None:
    record = await one([acts("submit_answer", answer=answer)])
    assert (record.submission.prediction, record.correct) == ("B", True)


@pytest.mark.parametrize(("answer", "kept"), [(None, ""), (2, "2"), ("both", "both"), (["A", "B"], '["A", "B"]')])
async def test_agt_5_anything_else_is_kept_as_text_and_wrong(answer: object, kept: str) -> None:
    record = await one([acts("submit_answer", answer=answer, evidence={"x": 1}, reasoning=["y"])])
    assert (record.submission.prediction, record.correct) == (kept, False)
    assert record.submission.stop_reason is StopReason.FINISHED


async def test_agt_5_a_record_that_the_store_refuses_makes_that_question_an_error_only() -> None:
    room = Room([question("q1"), question("q2"), question("q3")], ScriptedModel([ANSWER]))
    room.store.refusals = [RecordRefused("bad record")]
    answers = await room.run(concurrency=1)
    reasons = [answered.record.submission.stop_reason.value for answered in answers]
    assert reasons == ["error", "finished", "finished"]
    assert "bad record" in room.store.records["w", "r", "q1"].submission.error_detail


async def test_agt_5_a_question_without_a_sound_video_is_an_error_and_the_others_go_on() -> None:
    room = Room([question("q1", video_id="gone"), question("q2")], ScriptedModel([ANSWER]))
    reasons = {a.record.question.question_id: a.record.submission.stop_reason.value for a in await room.run()}
    assert reasons == {"q1": "error", "q2": "finished"}


async def test_agt_6_answers_are_durable_before_they_are_streamed() -> None:
    room = Room([question(f"q{i}") for i in range(20)], ScriptedModel([VIEW, ANSWER]))
    async for answered in room.answer(room.request()):
        assert ("w", "r", answered.record.question.question_id) in room.store.records


async def test_agt_6_a_store_that_is_away_ends_the_call() -> None:
    room = Room([question("q1"), question("q2")], ScriptedModel([ANSWER]))
    room.store.refusals = [StoreUnavailable("away")] * 2
    with pytest.raises(StoreUnavailable):
        await room.run()


async def test_agt_6_no_more_questions_are_under_way_than_allowed() -> None:
    room = Room([question(f"q{i}") for i in range(12)], ScriptedModel([VIEW, ANSWER], seconds=0.005))
    assert len(await room.run(concurrency=3)) == 12
    assert room.model.most_in_flight == 3


async def test_agt_6_cancelling_stops_new_questions_and_those_under_way() -> None:
    room = Room([question(f"q{i}") for i in range(30)], ScriptedModel([ANSWER], seconds=0.01))
    async with aclosing(room.answer(room.request(concurrency=2))) as answers:
        await anext(answers)
    asked = len(room.model.requests)
    await asyncio.sleep(0.05)
    assert len(room.model.requests) == asked <= 6
    assert room.model.in_flight == 0


async def test_agt_6_cancelling_the_reader_task_cancels_the_questions() -> None:
    room = Room([question(f"q{i}") for i in range(5)], ScriptedModel([ANSWER], seconds=10))
    reader = asyncio.create_task(room.run())
    await asyncio.sleep(0.05)
    assert room.model.in_flight == 4
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert (room.model.in_flight, room.store.records) == (0, {})


async def test_agt_6_a_cancelled_call_that_a_question_waited_for_does_not_hang_the_batch() -> None:
    class Cancelling(ScriptedModel):
        async def chat(self, *args: Any, **options: Any) -> Any:
            raise asyncio.CancelledError

    room = Room([question("q1"), question("q2")], Cancelling())
    answers = await asyncio.wait_for(room.run(), 2)
    assert [answered.record.submission.stop_reason.value for answered in answers] == ["error", "error"]


async def test_agt_6_resume_takes_what_is_stored_and_repeats_only_missing_data() -> None:
    room = Room([question("q1"), question("q2"), question("q3")], ScriptedModel([ANSWER]))
    await room.run(question_ids=("q1", "q2"))
    failed = room.store.records["w", "r", "q2"]
    room.store.records["w", "r", "q2"] = replace(
        failed, submission=replace(failed.submission, stop_reason=StopReason.ERROR)
    )
    room.model.requests.clear()
    answers = await room.run(resume=True)
    assert {a.record.question.question_id: a.resumed for a in answers} == {"q1": True, "q2": False, "q3": False}
    assert len(room.model.requests) == 2
    assert all(answered.record.correct for answered in answers)


async def test_agt_6_the_salt_goes_to_every_model_call() -> None:
    room = Room([question()], ScriptedModel([VIEW, ANSWER]))
    await room.run(salt="gate-base")
    await room.run(salt=None)
    assert room.model.salts == ["gate-base"] * 2 + [None] * 2


def _system(room: Room) -> str:
    return str(room.model.requests[0].messages[0].content)


async def test_agt_4_auto_shows_always_skills_and_the_types_own_or_the_default() -> None:
    room = Room([question()], ScriptedModel([ANSWER]))
    room.store.versions[VersionKind.SKILLS, "v2"] = {
        **room.store.versions[VersionKind.SKILLS, "v1"],
        "general.md": skill("general", "*", "<!-- APPENDIX_START -->\nBe calm.\n<!-- APPENDIX_END -->"),
    }
    await room.run(skills_version="v2")
    assert '<skill name="general">\nBe calm.\n</skill>\n\n<skill name="counting-problem">' in _system(room)
    assert "Look everywhere." not in _system(room)
    other = Room([question(task_type="Other")], ScriptedModel([ANSWER]))
    await other.run()
    assert "Look everywhere." in _system(other)
    assert "Count twice." not in _system(other)


async def test_agt_6_an_override_takes_the_place_of_the_versions_file() -> None:
    room = Room([question()], ScriptedModel([ANSWER]))
    candidate = skill("counting-problem", "Counting Problem", "Count thrice.")
    await room.run(skill_overrides={"counting-problem.md": candidate})
    assert "Count thrice." in _system(room)
    assert "Count twice." not in _system(room)


async def test_evo_12_a_prompt_override_takes_the_place_of_the_versions_prompt_for_this_call_only() -> None:
    room = Room([question()], ScriptedModel([ANSWER]))
    published = room.store.versions[VersionKind.PROMPTS, "v1"]["agent.system.md"]
    candidate = published.replace("\n## How to work\n", "\n## How to work\n\nLook twice before you answer.\n")
    await room.run(prompt_overrides={"agent.system.md": candidate})
    assert "Look twice before you answer." in _system(room)
    await room.run(run_id="another")
    assert "Look twice before you answer." not in str(room.model.requests[-1].messages[0].content)


@pytest.mark.parametrize(
    ("override", "named", "field"),
    [
        ({"agent.sytem.md": "text"}, "has no file agent.sytem.md", "prompt_overrides[agent.sytem.md]"),
        ({"agent.system.md": "no front matter"}, "agent.system", "prompt_overrides"),
    ],
)
async def test_evo_12_a_prompt_override_that_cannot_drive_the_agent_ends_the_call(
    override: dict[str, str], named: str, field: str
) -> None:
    room = Room([question()], ScriptedModel([ANSWER]))
    with pytest.raises(UnusableVersion, match=named) as raised:
        await room.run(prompt_overrides=override)
    assert (raised.value.field, room.model.requests) == (field, [])


async def test_agt_4_manual_shows_a_catalogue_and_reads_skills_on_demand() -> None:
    room = Room([question()], ScriptedModel([acts("read_skill", name="Counting-Problem"), ANSWER]))
    (answered,) = await room.run(skill_mode=SkillMode.MANUAL)
    assert "- counting-problem: about counting-problem" in _system(room)
    assert "Count twice." not in _system(room)
    assert "Count twice." in answered.record.transcript[0].output


async def test_agt_4_none_shows_no_skill_and_needs_no_version() -> None:
    room = Room([question()], ScriptedModel([ANSWER]))
    await room.run(skill_mode=SkillMode.NONE, skills_version="")
    assert "There are no skills" in _system(room)


async def test_agt_4_direct_is_one_call_without_tools_and_the_same_record() -> None:
    room = Room([question(video_id="")], ScriptedModel(['{"reasoning": "as read", "answer": "b"}']))
    (answered,) = await room.run(solver=SolverKind.DIRECT)
    record = answered.record
    assert (record.correct, record.submission.reasoning, len(room.model.requests)) == (True, "as read", 1)
    prompt = str(room.model.requests[0].messages[0].content)
    assert "<options>\nA. Two\nB. Three\nC. Four\n</options>" in prompt
    assert "Count twice." in prompt
    assert [entry.tool for entry in record.transcript] == ["submit_answer"]


@pytest.mark.parametrize(
    ("reply", "reason", "prediction"),
    [
        ("B", "finished", "B"),
        ("Three.", "finished", "B"),
        ('{"answer": "none"}', "finished", "none"),
        ("I think it is B or C", "parse_error", ""),
        ('{"reasoning": "no"}', "parse_error", ""),
    ],
)
async def test_agt_4_a_direct_reply_is_an_object_or_a_bare_option(reply: str, reason: str, prediction: str) -> None:
    record = await one([reply], solver=SolverKind.DIRECT)
    assert (record.submission.stop_reason.value, record.submission.prediction) == (reason, prediction)
    assert len(record.transcript) == 1


@pytest.mark.parametrize(
    ("kind", "files", "named"),
    [
        (VersionKind.PROMPTS, {}, "agent.system"),
        (VersionKind.SKILLS, {"a.md": skill("a", "A", "x")}, "default-strategy.md is missing"),
        (VersionKind.SKILLS, {"default-strategy.md": "no front matter"}, "default-strategy.md is no skill"),
    ],
)
async def test_agt_6_versions_that_cannot_drive_the_agent_are_named(
    kind: VersionKind, files: dict[str, str], named: str
) -> None:
    room = Room([question()], ScriptedModel([ANSWER]))
    room.store.versions[kind, "v1"] = files
    with pytest.raises(UnusableVersion, match=named):
        await room.run()


async def test_agt_6_unknown_questions_end_the_call_before_any_model_call() -> None:
    room = Room([question()], ScriptedModel([ANSWER]))
    with pytest.raises(NotFound):
        await room.run(question_ids=("q1", "q9"))
    assert room.model.requests == []


async def test_agt_5_text_that_no_database_takes_is_cleaned_before_it_is_stored() -> None:
    args = '{"answer": "\\ud83d", "x": "\\u0000"}'
    reply = '{"reflect": "\\ud800\\u0000", "action": {"tool": "submit_answer", "args": ' + args + "}}"
    record = await one([reply])
    assert record.submission.prediction == "?"
    assert record.transcript[0].args_json.encode()
