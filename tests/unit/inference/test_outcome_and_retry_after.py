"""INF-2 and INF-4: the one classification, and `Retry-After`."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.inference.domain.completion_stream import error_in
from services.inference.domain.outcome import AttemptFault, Outcome, outcome_of_code, outcome_of_status, require_no_key
from services.inference.domain.retry_after import retry_after_seconds

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def test_inf_2_every_status_has_one_outcome():
    statuses = range(100, 700)
    transient = {408, 425, 429, *range(500, 600)}
    assert {s for s in statuses if outcome_of_status(s) is Outcome.OK} == set(range(200, 300))
    assert {s for s in statuses if outcome_of_status(s) is Outcome.TRANSIENT} == transient
    assert {outcome_of_status(s) for s in (301, 400, 401, 403, 404, 409, 422)} == {Outcome.PERMANENT}


@pytest.mark.parametrize(
    ("codes", "outcome"),
    [
        ((429,), Outcome.TRANSIENT), (("503",), Outcome.TRANSIENT), ((400,), Outcome.PERMANENT),
        (("401",), Outcome.PERMANENT),
        ((None, "invalid_request_error"), Outcome.PERMANENT), (("rate_limit_exceeded",), Outcome.TRANSIENT),
        (("context_length_exceeded", "x"), Outcome.PERMANENT), ((None, None), Outcome.TRANSIENT),
        ((True,), Outcome.TRANSIENT),
        ((0,), Outcome.TRANSIENT), ((200,), Outcome.TRANSIENT), ((None, "BadRequestError"), Outcome.PERMANENT),
    ],
)  # fmt: skip
def test_inf_2_codes_inside_a_body_have_the_outcome_of_their_status(codes, outcome):
    assert outcome_of_code(*codes) is outcome


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None), ("", None), ("2", 2.0), (" 2 ", 2.0), ("2.5", 2.5), ("0", 0.0), ("-5", None), ("inf", None),
        ("nan", None),
        ("1e400", None), ("9" * 400, None), ("abc", None), ("٣", None), ("2 seconds", None),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0),
        (format_datetime(NOW - timedelta(hours=1), usegmt=True), 0.0),
        ("Sun, 29 Nov 2026 12:00:07", 7.0), ("Sun, 99 Nov 2026 12:00:07 GMT", None),
        ("Fri, 31 Dec 99999 23:59:59 GMT", None),
    ],
)  # fmt: skip
def test_inf_4_retry_after_is_read_only_when_it_makes_sense(value, seconds):
    assert retry_after_seconds(value, NOW) == seconds


@settings(max_examples=200)
@given(st.text(max_size=40))
def test_qua_13_no_retry_after_raises_or_is_negative(value):
    seconds = retry_after_seconds(value, NOW)
    assert seconds is None or 0 <= seconds < float("inf")


@pytest.mark.parametrize("body", [{}, {"error": None}, {"error": ""}, {"choices": []}, [], None, "x", 3, {"error": {}}])
def test_inf_3_a_body_without_an_error_reports_none(body):
    assert error_in(body) is None


SECRET = "sk-planted-0123456789abcdef"


@settings(max_examples=100)
@given(st.text(max_size=30), st.text(max_size=30), st.integers(4, len(SECRET)))
def test_qua_14_a_fault_without_a_secret_holds_neither_it_nor_a_cut_off_beginning(before, after, cut):
    whole = AttemptFault(Outcome.PERMANENT, before + SECRET + after, code=SECRET).without(SECRET)
    assert SECRET not in whole.message
    assert SECRET not in whole.code
    short = AttemptFault(Outcome.PERMANENT, before + SECRET[:cut] + "…").without(SECRET)
    assert not short.message.removesuffix("…").endswith(SECRET[:4])


@pytest.mark.parametrize("key", [None, "", "EMPTY", "ollama", "not-needed-here"])
def test_qua_14_a_placeholder_of_a_key_may_stand_in_an_answer(key):
    require_no_key((f"EMPTY ollama not-needed-here {key}",), key)


def test_qua_14_an_answer_that_holds_the_key_anywhere_is_refused_for_good():
    with pytest.raises(AttemptFault, match="repeats the API key") as caught:
        require_no_key(("", f"a{SECRET}b"), SECRET)
    assert (caught.value.outcome, caught.value.code) == (Outcome.PERMANENT, "key_in_answer")
    require_no_key((SECRET[:-1], SECRET[1:]), SECRET)
