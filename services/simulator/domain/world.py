"""The world: everything that decides how the simulated models behave, as frozen values.

A world is written as TOML (see `examples/sample/world.toml`); each class here is one of its tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from services.simulator.domain.errors import WorldError
from services.simulator.domain.fault_kinds import FAULT_KINDS

BEHAVIOURS = (
    "search_options",  # one search per option
    "look_after",  # open the event after the one the question names
    "look_before",  # open the event before it
    "count_children",  # open every scene and count the events that match
    "check_frames",  # open the frames of the matching event
    "mind_negation",  # reread the question for a "not"
    "compare_times",  # search each option and compare when they happen
    "open_scenes",  # open every scene before answering
    "weigh_mentions",  # search for every option, open what that finds, prefer what is mentioned again and again
    "stop_early",  # misleading: answer from the overview alone
    "wrong_way",  # misleading: look before where "after" is asked, and the reverse
)
QUALITIES = ("helpful", "neutral", "harmful")
CATEGORIES = (
    "format",
    "budget",
    "missed_nodes",
    "tool_incomplete",
    "tool_hallucinated",
    "skill_not_followed",
    "skill_misleading",
    "skill_silent",
    "reasoning",
    "undetermined",
)


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise WorldError(message)


def _share(name: str, value: float) -> None:
    _require(0.0 <= value <= 1.0, f"{name} = {value} is not a share between 0 and 1")


def _known(name: str, values: tuple[str, ...], allowed: tuple[str, ...]) -> None:
    unknown = [value for value in values if value not in allowed]
    _require(not unknown, f"{name} names {', '.join(unknown)}; known are {', '.join(allowed)}")


def _compiles(name: str, patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise WorldError(f"{name}: {pattern!r} is no regular expression: {error}") from None


@dataclass(frozen=True, slots=True)
class Advice:
    """Phrases (regular expressions, searched sentence by sentence) that switch one behaviour on."""

    behaviour: str
    phrases: tuple[str, ...]
    misleads: bool = False

    def __post_init__(self) -> None:
        _known("advice.behaviour", (self.behaviour,), BEHAVIOURS)
        _require(bool(self.phrases), f"advice.phrases of {self.behaviour} is empty")
        _compiles("advice.phrases", self.phrases)


@dataclass(frozen=True, slots=True)
class AgentWorld:
    """How `sim-agent` behaves.

    follow_rate: share of questions in which an advice that is present is followed.
    spontaneous_rate: share in which a behaviour that helps is used without advice.
    slip_rate: share in which the second best option is submitted.
    noise: standard deviation added to each option's support (supports lie around 0..2).
    malformed_rate: share of turns answered with broken JSON.
    """

    follow_rate: float = 0.94
    spontaneous_rate: float = 0.02
    slip_rate: float = 0.03
    noise: float = 0.05
    malformed_rate: float = 0.0

    def __post_init__(self) -> None:
        for name in ("follow_rate", "spontaneous_rate", "slip_rate", "malformed_rate"):
            _share(f"agent.{name}", getattr(self, name))
        _require(self.noise >= 0, f"agent.noise = {self.noise} is negative")


@dataclass(frozen=True, slots=True)
class Need:
    """Questions matching `pattern` (a regular expression, any case) need these behaviours to be answered well."""

    pattern: str
    behaviours: tuple[str, ...]

    def __post_init__(self) -> None:
        _compiles("needs.pattern", (self.pattern,))
        _known("needs.behaviours", self.behaviours, BEHAVIOURS)


@dataclass(frozen=True, slots=True)
class DiceEffect:
    """The share right that a phrase (regular expression) in the prompt adds, for one task type or, empty, for all."""

    phrase: str
    shift: float
    task_type: str = ""

    def __post_init__(self) -> None:
        _compiles("dice.effects.phrase", (self.phrase,))
        _require(-1.0 <= self.shift <= 1.0, f"dice.effects.shift = {self.shift} is not within [-1, 1]")


@dataclass(frozen=True, slots=True)
class DiceWorld:
    """How often `sim-dice` is right: per task type, `default` for the others, plus the effects of advice."""

    default: float = 0.5
    right: Mapping[str, float] = field(default_factory=dict)
    effects: tuple[DiceEffect, ...] = ()

    def __post_init__(self) -> None:
        _share("dice.default", self.default)
        for task_type, value in self.right.items():
            _share(f"dice.right.{task_type}", value)


@dataclass(frozen=True, slots=True)
class JudgeWorld:
    """How often `sim-judge` names the true cause, and how often its answer is no JSON.

    traced_share: share of what sets the right answer apart that the trace must hold before a skill that says nothing
    is to blame; below it no way of reading would have helped. At 0 the trace is not asked.
    """

    accuracy: float = 0.85
    malformed_rate: float = 0.0
    traced_share: float = 0.0

    def __post_init__(self) -> None:
        _share("judge.accuracy", self.accuracy)
        _share("judge.traced_share", self.traced_share)
        _share("judge.malformed_rate", self.malformed_rate)


PROMPT_TYPE = "prompt"
"""Stands among the task types of a proposal that suits a prompt, which is in force for all of them."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """One piece of advice `sim-evolve` may write, for the listed task types or `prompt` (empty: for all).

    answers: the categories of diagnosis that it is meant to mend (empty: any). why: what the agent will do otherwise,
    for the edit's rationale.
    """

    quality: str
    text: str
    task_types: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    why: str = ""

    def __post_init__(self) -> None:
        _known("evolve.proposals.quality", (self.quality,), QUALITIES)
        _known("evolve.proposals.answers", self.answers, CATEGORIES)
        _require(bool(self.text.strip()), "evolve.proposals.text is empty")


@dataclass(frozen=True, slots=True)
class EvolveWorld:
    """The mixture of edits `sim-evolve` proposes: relative weights by quality, and the share that is badly formed."""

    mixture: Mapping[str, float] = field(default_factory=lambda: {"helpful": 0.6, "neutral": 0.25, "harmful": 0.15})
    badly_formed_rate: float = 0.0
    proposals: tuple[Proposal, ...] = ()

    def __post_init__(self) -> None:
        _known("evolve.mixture", tuple(self.mixture), QUALITIES)
        _require(
            all(weight >= 0 for weight in self.mixture.values()) and sum(self.mixture.values()) > 0,
            "evolve.mixture needs weights that are not negative and not all 0",
        )
        _share("evolve.badly_formed_rate", self.badly_formed_rate)


@dataclass(frozen=True, slots=True)
class LatencyWorld:
    """Log-normal time to the first token, in milliseconds.

    median_ms: median; 0 answers at once. sigma: standard deviation of the logarithm.
    right_factor: factor on the median where the answer submitted is right (needs the world's answers).
    token_ms: further time per chunk of a stream.
    """

    median_ms: float = 0.0
    sigma: float = 0.5
    right_factor: float = 1.0
    token_ms: float = 0.0

    def __post_init__(self) -> None:
        for name in ("median_ms", "sigma", "token_ms"):
            _require(getattr(self, name) >= 0, f"latency.{name} is negative")
        _require(self.right_factor > 0, "latency.right_factor must be positive")


@dataclass(frozen=True, slots=True)
class FaultWorld:
    """Share of attempts that suffer each kind of fault (see `fault_kinds`), and what the kinds need to know."""

    rates: Mapping[str, float] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    retry_after: str = "1"
    after_chunks: int = 2
    hold_seconds: float = 30.0
    attempts_per_prompt: int = 1_000_000

    def __post_init__(self) -> None:
        _known("faults.rates", tuple(self.rates), tuple(FAULT_KINDS))
        for kind, rate in self.rates.items():
            _share(f"faults.rates.{kind}", rate)
        _require(sum(self.rates.values()) <= 1.0 + 1e-9, "faults.rates add up to more than 1")
        _require(self.after_chunks >= 0, "faults.after_chunks is negative")
        _require(self.hold_seconds >= 0, "faults.hold_seconds is negative")
        _require(self.attempts_per_prompt >= 0, "faults.attempts_per_prompt is negative")


@dataclass(frozen=True, slots=True)
class World:
    """All that the simulated models know besides the prompt. `answers` is a question file, relative to the world's."""

    seed: int = 0
    answers: str = ""
    same_words: tuple[tuple[str, ...], ...] = ()
    advice: tuple[Advice, ...] = ()
    needs: tuple[Need, ...] = ()
    agent: AgentWorld = AgentWorld()
    dice: DiceWorld = DiceWorld()
    judge: JudgeWorld = JudgeWorld()
    evolve: EvolveWorld = EvolveWorld()
    latency: LatencyWorld = LatencyWorld()
    faults: FaultWorld = FaultWorld()
