"""INF-8: the breaker's rules, without waiting."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from services.inference.domain.breaker import Breaker, BreakerState, Lease, Refusal
from services.inference.domain.outcome import Outcome

FAILURES = [Outcome.TRUNCATED, Outcome.TRANSIENT]
SILENT = [Outcome.PERMANENT, Outcome.CANCELLED]


def opened(at=0.0, cooldown=10.0):
    breaker = Breaker(1, cooldown)
    breaker.settle(breaker.claim(at), Outcome.TRANSIENT, at)
    return breaker


@pytest.mark.parametrize("failure", FAILURES)
def test_inf_8_it_opens_after_the_threshold_of_consecutive_failures(failure):
    breaker = Breaker(3, 10)
    for _ in range(2):
        assert not breaker.settle(breaker.claim(0), failure, 0)
    breaker.settle(breaker.claim(0), Outcome.OK, 0)
    for _ in range(2):
        assert not breaker.settle(breaker.claim(0), failure, 0)
    assert breaker.settle(breaker.claim(0), failure, 1)
    assert breaker.claim(4) == Refusal(7)


@pytest.mark.parametrize("outcome", SILENT)
def test_inf_8_permanent_and_cancelled_neither_count_nor_forgive(outcome):
    breaker = Breaker(2, 10)
    breaker.settle(breaker.claim(0), Outcome.TRANSIENT, 0)
    for _ in range(5):
        breaker.settle(breaker.claim(0), outcome, 0)
    assert breaker.consecutive_failures == 1
    assert breaker.settle(breaker.claim(0), Outcome.TRANSIENT, 0)


def test_inf_8_after_the_cooldown_exactly_one_probe_is_let_through():
    breaker = opened()
    claims = [breaker.claim(10) for _ in range(50)]
    assert [type(claim) for claim in claims] == [Lease] + [Refusal] * 49
    assert claims[0].probe


@pytest.mark.parametrize("outcome", SILENT)
def test_inf_8_a_probe_that_says_nothing_gives_its_lease_back(outcome):
    breaker = opened()
    breaker.settle(breaker.claim(10), outcome, 11)
    assert breaker.state(11) is BreakerState.HALF_OPEN
    assert isinstance(breaker.claim(11), Lease)


@pytest.mark.parametrize("failure", FAILURES)
def test_inf_8_a_failed_probe_opens_again_for_a_whole_cooldown(failure):
    breaker = opened()
    assert breaker.settle(breaker.claim(10), failure, 12)
    assert breaker.claim(12) == Refusal(10)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_inf_8_what_a_call_from_before_reports_is_ignored(outcome):
    breaker = Breaker(1, 10)
    late, failing = breaker.claim(0), breaker.claim(0)
    breaker.settle(failing, Outcome.TRANSIENT, 0)
    for now in (5, 15):
        breaker.settle(late, outcome, now)
        assert breaker.state(now) is not BreakerState.CLOSED
    probe = breaker.claim(15)
    breaker.settle(late, outcome, 15)
    assert isinstance(breaker.claim(15), Refusal)
    breaker.settle(probe, Outcome.OK, 16)
    assert breaker.state(16) is BreakerState.CLOSED


def test_inf_8_an_operator_opens_for_a_time_and_resets():
    breaker = Breaker(5, 10)
    running = breaker.claim(0)
    breaker.force_open(0, 30)
    assert breaker.claim(29) == Refusal(1)
    breaker.settle(running, Outcome.OK, 5)
    assert breaker.state(5) is BreakerState.OPEN
    breaker.reset()
    assert isinstance(breaker.claim(5), Lease)


class BreakerMachine(RuleBasedStateMachine):
    """Whatever happens: never two probes at once, never wedged, never closed by anything but its probe or a reset."""

    def __init__(self):
        super().__init__()
        self.breaker = Breaker(2, 5)
        self.now = 0.0
        self.leases = []

    @rule(seconds=st.sampled_from([0.0, 1.0, 5.0]))
    def wait(self, seconds):
        self.now += seconds

    @rule()
    def claim(self):
        claimed = self.breaker.claim(self.now)
        if isinstance(claimed, Lease):
            self.leases.append(claimed)

    @rule(index=st.integers(0, 20), outcome=st.sampled_from(list(Outcome)))
    def settle(self, index, outcome):
        if not self.leases:
            return
        lease = self.leases.pop(index % len(self.leases))
        before = self.breaker.state(self.now)
        self.breaker.settle(lease, outcome, self.now)
        if before is not BreakerState.CLOSED and self.breaker.state(self.now) is BreakerState.CLOSED:
            assert lease.probe
            assert outcome is Outcome.OK

    @invariant()
    def one_probe_and_no_wedge(self):
        current = [lease for lease in self.leases if lease.probe and lease.generation == self.breaker._generation]
        assert len(current) <= 1
        if not current:
            assert self.breaker.refusal(self.now + 5) is None


BreakerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestBreakerMachine = BreakerMachine.TestCase
