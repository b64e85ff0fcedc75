"""QUA-13: whatever stands in a request, the evolver answers with a result or names the field."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from videotree.evolver.v1 import case_pb2, edit_pb2
from videotree.evolver.v1 import evolver_service_pb2 as pb

from services.evolver.domain.errors import InvalidRequest
from services.evolver.domain.momentum import sorted_changes
from services.evolver.domain.targets import UpdateMode, template_values
from services.evolver.domain.trace import estimate_tokens, rebuild_trace, trace_text
from services.evolver.rpc.translate_edits import proposal_job, slow_update_job

TEXTS = st.one_of(st.sampled_from(["", "q1", "{}", "[1]", "skill_silent", "{{x}}", "</skill>"]), st.text(max_size=20))
SAFE_TEXTS = TEXTS.map(lambda text: text.encode("utf-8", "replace").decode())
EDITS = st.builds(
    edit_pb2.Edit, op=st.integers(0, 5), target=SAFE_TEXTS, content=SAFE_TEXTS, cases=st.lists(SAFE_TEXTS, max_size=2)
)
DIAGNOSES = st.builds(
    case_pb2.CaseDiagnosis, category=SAFE_TEXTS, cause=st.integers(0, 3), why=SAFE_TEXTS, reminder=SAFE_TEXTS
)
CASES = st.builds(case_pb2.Case, question_id=SAFE_TEXTS, text=SAFE_TEXTS, diagnosis=st.none() | DIAGNOSES)
PACKS = st.builds(
    case_pb2.CasePack,
    target_file=SAFE_TEXTS,
    statistics_json=SAFE_TEXTS,
    failures=st.lists(CASES, max_size=3),
    successes=st.lists(CASES, max_size=2),
)
PROPOSALS = st.builds(
    pb.ProposeEditRequest,
    case_pack=PACKS,
    current_text=SAFE_TEXTS,
    edit_budget=st.integers(-2, 5),
    rejected=st.lists(
        st.builds(edit_pb2.RejectedEdit, fingerprint=SAFE_TEXTS, edits=st.lists(EDITS, max_size=2)), max_size=2
    ),
    update_mode=st.integers(0, 4),
    target_kind=st.integers(0, 5),
)


def _require_field(error: InvalidRequest) -> None:
    assert error.field
    assert str(error)


@settings(max_examples=200, deadline=None)
@given(PROPOSALS)
def test_qua_13_a_proposal_request_is_read_or_its_field_is_named(request: pb.ProposeEditRequest) -> None:
    try:
        job = proposal_job(request)
    except InvalidRequest as error:
        _require_field(error)
        return
    values = template_values(job.kind, UpdateMode.PATCH, job.pack, job.current_text, 1, job.rejected, 100)
    assert all(isinstance(value, str) for value in values.values())


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(SAFE_TEXTS, SAFE_TEXTS), max_size=3), st.lists(st.booleans(), max_size=6))
def test_qua_13_a_slow_update_request_is_read_or_its_field_is_named(
    skills: list[tuple[str, str]], flags: list[bool]
) -> None:
    changes = [
        pb.UnitChange(unit_id=str(i), earlier_correct=flag, later_correct=i % 2 == 0) for i, flag in enumerate(flags)
    ]
    request = pb.ProposeSlowUpdateRequest(
        skills=[pb.SkillText(name=name, text=text) for name, text in skills], changes=changes
    )
    try:
        job = slow_update_job(request)
    except InvalidRequest as error:
        _require_field(error)
        return
    assert sum(len(units) for units in sorted_changes(job.changes).values()) == len(flags)


ENTRIES = st.lists(
    st.fixed_dictionaries({}, optional={"step": st.integers() | st.text(max_size=3), "tool": SAFE_TEXTS | st.none(),
                                        "args": st.none() | st.dictionaries(SAFE_TEXTS, SAFE_TEXTS, max_size=2),
                                        "output": st.text(max_size=400), "thought": st.text(max_size=50)}),
    max_size=12,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(ENTRIES, st.integers(60, 2000))
def test_evo_5_a_trace_of_any_kind_keeps_its_bound_and_marks_its_cuts(entries: list[object], bound: int) -> None:
    trace = rebuild_trace(json.dumps(entries))
    assert len(trace) == len(entries)
    text, cut = trace_text(trace, bound)
    assert estimate_tokens(text) <= bound
    assert cut == ("cut ...]" in text) or any("cut ...]" in step.output for step in trace)
