"""The page about a run (TRN-13, TRN-13b)."""

import dataclasses
import json

from services.trainer.adapters.report_page import render_report
from services.trainer.adapters.simulation_page import render_simulation
from services.trainer.domain.diagnoses import Diagnosis
from services.trainer.domain.evaluations import HoldoutTable
from services.trainer.domain.gate_simulation import FlipRates, SimulatedCell, Simulation
from services.trainer.domain.runs import CallSummary
from services.trainer.domain.workspaces import Manifest
from services.trainer.use_cases.gather_report import RunReport, gather_report
from tests.builders.trainings import train_in
from tests.fakes.trainer_services import services_of
from tests.fakes.trainer_world import TYPES, World


async def report_of(world: World) -> RunReport:
    await train_in(world)
    return await gather_report(services_of(world), "lab", "run-1")


def without_script(page: str) -> str:
    """The page without plotly's own program, which is the only script that is ours to trust."""
    start, end = page.index("<script>"), page.index("</script>")
    return page[:start] + page[end:]


async def test_trn_13_the_page_asks_for_nothing_from_outside() -> None:
    page = without_script(render_report(await report_of(World())))
    assert "default-src 'none'" in page
    for request in ("src=", "href=", "url(", "http://", "https://", "@import"):
        assert request not in page, request


async def test_trn_13_accepted_edits_stand_beside_their_cases_and_evidence() -> None:
    report = await report_of(World())
    page = without_script(render_report(report))
    accepted = next(row for row in report.edits if row.record.status == "accepted")
    assert '<span class="added">+GOOD</span>' in page
    case = json.loads(accepted.record.cases_json)[0]
    assert f"<summary>{case['question_id']} · " in page
    assert '<dt>answered</dt><dd class="gave">B. no</dd><dt>right is</dt><dd class="gold">A. yes</dd>' in page
    assert case["why"] in page
    gate = next(row.report for row in report.steps if row.report.gate_action == "ACCEPT_CONFIRMED")
    assert gate.stop_reason in page
    assert "optimistic" in page
    assert "honest" in page


async def test_trn_13_an_accepted_rule_leads_back_to_the_wrong_answers_that_it_names() -> None:
    report = await report_of(World())
    row = next(each for each in report.edits if each.record.status == "accepted")
    cases = json.loads(row.record.cases_json)
    opened = ["n7 [2s-3s] A hat.", "n8 [3s-4s] A cook."]
    evidence = {
        "nothing_visited": {"informing_calls": 2, "opened": opened, "searches": ["the cook's hat"]},
        "evidence": {"missed_nodes": ["n9"], "missed": ["n9 [9s-12s] A red hat."], "why": "n9 says it"},
    }
    told = [{**case, "category": "missed_nodes", "evidence": evidence} for case in cases]
    edits = json.loads(row.record.edits_json)
    edits[0]["edit"]["cases"], edits[0]["edit"]["rationale"] = [cases[0]["question_id"]], "It stopped at the first hit."
    record = dataclasses.replace(row.record, cases_json=json.dumps(told), edits_json=json.dumps(edits))
    page = without_script(render_report(dataclasses.replace(report, edits=(dataclasses.replace(row, record=record),))))
    block = page[page.index("<h2>Accepted edits</h2>") : page.index("<h2>Gates</h2>")]
    named = block[
        block.index("Wrong answers that it names") : block.index("Other wrong answers that the optimizer saw")
    ]
    steps = [
        '<span class="added">+GOOD</span>',
        f'It stopped at the first hit. <span class="soft">Named cases: {cases[0]["question_id"]}.</span>',
        "ACCEPT_CONFIRMED: ",
        f"<details open><summary>{cases[0]['question_id']} · ",
        "<dt>options</dt><dd>A. yes<br>B. no</dd>",
        '<dd class="gave">B. no</dd><dt>right is</dt><dd class="gold">A. yes</dd>',
        "<dt>searched for</dt><dd>“the cook&#39;s hat”</dd>",
        '<dt>opened</dt><dd class="units">n7 [2s-3s] A hat.<br>n8 [3s-4s] A cook.</dd>',
        '<dt>missed</dt><dd class="units">n9 [9s-12s] A red hat.</dd>',
        "missed_nodes (the deciding nodes were not looked at): a defect of the skill, which an edit may mend; tier T2",
        cases[0]["why"],
    ]
    places = [block.index(step) for step in steps]
    assert places == sorted(places)
    assert named.count("<summary>") == 1


async def test_trn_13_reminders_in_an_accepted_edit_are_told_apart_from_the_edit() -> None:
    report = await report_of(World())
    row = next(each for each in report.edits if each.record.status == "accepted")
    told = "The lines added between the APPENDIX marks are reminders out of lapses"
    start, end = " <!-- APPENDIX_START -->\n", " <!-- APPENDIX_END -->\n"
    for diff, reminds in (
        (f"+- Rule.\n{start}+- Reminder.\n{end}", True),
        (f"+- Rule.\n{start}{end}", False),
        ("+- Rule.\n", False),
    ):
        record = dataclasses.replace(row.record, unified_diff=diff)
        page = render_report(dataclasses.replace(report, edits=(dataclasses.replace(row, record=record),)))
        assert (told in page) == reminds


async def test_trn_13_reminders_alone_stand_beside_the_lapses_that_they_come_from() -> None:
    report = await report_of(World())
    row = next(each for each in report.edits if each.record.status == "accepted")
    defect, lapse = json.loads(row.record.cases_json)[:2]
    cases = json.dumps([{**defect, "cause": "defect"}, {**lapse, "cause": "lapse"}])
    record = dataclasses.replace(row.record, edits_json="[]", cases_json=cases)
    page = render_report(dataclasses.replace(report, edits=(dataclasses.replace(row, record=record),)))
    lapses = page[page.index("Lapses that it reminds of") : page.index("Other wrong answers that the optimizer saw")]
    assert f"<details open><summary>{lapse['question_id']} · " in lapses
    assert defect["question_id"] not in lapses
    assert "The optimizer proposed no edit." in page


async def test_trn_13_the_baselines_diagnoses_are_counted_by_category_and_tier() -> None:
    report = await report_of(World())
    made = [("missed_nodes", "T2"), ("missed_nodes", "T2"), ("reasoning", "T1")]
    diagnoses = tuple(
        Diagnosis("baseline", f"q{n}", "f", tier, category, "defect", False, "why")
        for n, (category, tier) in enumerate(made)
    )
    page = without_script(render_report(dataclasses.replace(report, diagnoses=diagnoses)))
    first = page.index("<td>missed_nodes</td><td>the deciding nodes were not looked at</td>")
    assert '<td class="n">2</td><td class="n">0</td><td class="n">0</td>' in page[first:]
    assert first < page.index("<td>reasoning</td>")
    assert "not diagnosed" in render_report(dataclasses.replace(report, diagnoses=()))


async def test_trn_13_the_page_is_readable_in_dark_and_light() -> None:
    page = render_report(await report_of(World()))
    assert "prefers-color-scheme: dark" in page
    assert "color-scheme: light dark" in page


async def test_qua_14_what_a_model_wrote_cannot_become_markup() -> None:
    world = World()
    world.proposals = {"Action Reasoning": "GOOD <img src=x onerror=alert(1)></script><script>alert(2)</script>"}
    page = without_script(render_report(await report_of(world)))
    assert "<img" not in page
    assert "alert(2)</script>" not in page
    assert "&lt;img src=x" in page


async def test_trn_13b_missing_data_reads_not_recorded_and_never_zero() -> None:
    report = await report_of(World())
    bare = dataclasses.replace(report, calls=(), holdout=HoldoutTable((), ()), steps=(), evidence=(), edits=())
    page = without_script(render_report(bare))
    assert "Model calls: not recorded." in page
    assert "Held-out test: not recorded." in page
    priced = without_script(
        render_report(dataclasses.replace(report, calls=(CallSummary("a", "OK", "miss", 1, 1, 1, 0),)))
    )
    assert "not priced" in priced


async def test_a_run_without_any_step_has_a_page() -> None:
    report = await report_of(World())
    manifest: Manifest = report.manifest
    assert "No gate ran yet." in render_report(RunReport(report.run, manifest))


async def test_trn_13_the_units_that_decided_on_an_edit_stand_beside_it() -> None:
    report = await report_of(World())
    page = without_script(render_report(report))
    rows = [row.evidence for row in report.evidence if (row.epoch, row.step) == (0, 0)]
    wins = [row.unit_id for row in rows if row.task_type == TYPES[0] and row.cand_correct and not row.base_correct]
    gate = next(row.report for row in report.steps if row.report.gate_action == "ACCEPT_CONFIRMED")
    assert len(wins) == gate.w
    assert f"Units that decided: {gate.w} won, {gate.l} lost" in page
    texts = {question.unit_id: question.text for question in report.questions.values()}
    listed = "".join(f'<li><span class="soft">{unit}</span> {texts[unit]}</li>' for unit in wins)
    assert f"<p>Right only with the edit:</p><ul>{listed}</ul>" in page


async def test_trn_13_the_page_opens_with_what_came_of_the_run() -> None:
    report = await report_of(World())
    page = without_script(render_report(report))
    val = [metric.hard for metric in report.metrics if "+" not in metric.skills_version]
    judged = sum(row.report.n_planned > 0 for row in report.steps)
    assert f'<b>1 confirmed, 0 provisional</b><span class="soft">of {judged} edits judged' in page
    assert f"<b>{val[0]:.1%} → {val[-1]:.1%}</b>" in page


async def test_trn_13_every_version_says_where_it_comes_from_and_a_reverted_slow_update_is_told() -> None:
    world = World()
    world.slow_text = "GOOD\n"
    page = without_script(render_report(await report_of(world)))
    assert "<strong>v1 → v2</strong> · evolution · Action Reasoning: ACCEPT_CONFIRMED" in page
    assert "<strong>v2 → v3</strong> · slow update · momentum of epoch 1" in page
    assert page.count('<span class="added">+GOOD</span>') > 1
    world = World()
    world.slow_text, world.proposals = "BAD\n", {}
    page = without_script(render_report(await report_of(world)))
    assert "A slow update at the end of epoch 1 was reverted: val" in page
    assert "The run published none." in page


def test_trn_13_the_page_of_simulated_gates_asks_for_nothing_and_is_readable_in_dark_and_light() -> None:
    cell = SimulatedCell(FlipRates(0.3, 0.1), *[0.0] * (len(dataclasses.fields(SimulatedCell)) - 1))
    cell = dataclasses.replace(cell, confirmed_share=0.4, mean_units=38.0)
    page = render_simulation(Simulation((cell,), None), 60)
    own = without_script(page)
    assert "prefers-color-scheme: dark" in own
    assert "win 0.3, loss 0.1" in own
    assert "none at this length" in own
    for request in ("src=", "href=", "url(", "http://", "https://", "@import"):
        assert request not in own, request
