"""A whole world for the trainer in memory: store, agent, gate and evolver behind its ports, deterministic by text.

An agent is right on a question with a probability that the skill's text decides: it contains GOOD, BAD or neither.
The draw depends on run salt, question and text only, so that a repeated piece of work gives the same answers.
Any call can be made to crash, before or after it had its effect.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from services.questions import Question
from services.skills import skill_file, slug
from services.trainer.domain.checkpoint import Checkpoint
from services.trainer.domain.decisions import EpochDecision, StepDecision
from services.trainer.domain.diagnoses import DiagnoseJob, Diagnosis
from services.trainer.domain.evaluations import HoldoutEval, HoldoutRow, UnitEstimate
from services.trainer.domain.evolution import ProposalRequest
from services.trainer.domain.pools import Pools, PoolUnit
from services.trainer.domain.runs import Prediction, Run
from services.trainer.domain.versions import Version, VersionFile
from services.trainer.domain.workspaces import Best, CurrentVersions, Manifest

SYSTEM_PROMPT = "agent.system.md"
TYPES = ("Action Reasoning", "Counting Problem", "Object Recognition")


class Crash(BaseException):
    """The process died here."""


def draw(*parts: str) -> float:
    """A number in [0, 1) that depends on the parts only."""
    return int.from_bytes(hashlib.sha256("|".join(parts).encode()).digest()[:4], "big") / 2**32


class World:
    """All state, and the knobs a test turns. `steps_of_life` counts calls until the crash (None: immortal)."""

    def __init__(self, units_per_type: int = 20) -> None:
        self.questions = [
            Question(
                f"{slug(kind)}-{n:02}",
                f"video-{slug(kind)}-{n:02}",
                kind,
                f"{kind} {n}?",
                ("yes", "no"),
                "A",
                f"{slug(kind)}-{n:02}",
            )
            for kind in TYPES
            for n in range(units_per_type)
        ]
        pool = {0: "test", 1: "val", 2: "val"}
        self.pools = Pools(
            "baseline",
            "set",
            tuple(
                PoolUnit(q.unit_id, q.task_type, q.video_id, (q.question_id,), pool.get(n % 5, "diag"))
                for n, q in enumerate(self.questions)
            ),
            "pools-sha",
        )
        skills = {f"{slug(kind)}.md": f"{kind}: look.\n" for kind in TYPES} | {"default-strategy.md": "look.\n"}
        self.versions = {"skills": [version("skills", "v1", "", skills)], "prompts": [version("prompts", "v1", "", {})]}
        self.manifest = Manifest(
            "lab", CurrentVersions("all", "set", "v1", "v1"), Best(), "pools-sha", "baseline", "seed", "1"
        )
        self.predictions: dict[tuple[str, str], Prediction] = {}
        self.diagnosed: list[DiagnoseJob] = []
        self.runs: dict[str, Run] = {"baseline": Run("baseline", "baseline", config_json='{"max_steps": 20}')}
        self.checkpoints: dict[str, Checkpoint] = {}
        self.steps: dict[tuple[int, int], StepDecision] = {}
        self.epochs: dict[int, EpochDecision] = {}
        self.estimates: dict[str, UnitEstimate] = {}
        self.holdouts: dict[tuple[str, str], HoldoutEval] = {}
        self.lines: dict[tuple[int, str], HoldoutRow] = {}
        self.diagnoses: dict[str, Diagnosis] = {}
        self.intents: list[tuple[str, int]] = []
        self.proposals: Mapping[str, str] = {TYPES[0]: "GOOD", TYPES[1]: "BAD"}
        self.asked: list[ProposalRequest] = []
        self.slow_text = ""
        self.provisional = False
        self.endpoint_down = False
        self.calls: list[str] = []
        self.crash_at: int | None = None
        self.crash_after_effect = False
        for question in self.questions:
            self.record_answer("baseline", None, question, skills)

    def texts(self, kind: str, name: str) -> dict[str, str]:
        return next(each for each in self.versions[kind] if each.version == name).texts

    def in_force(self, skills: str, prompts: str) -> dict[str, str]:
        """All files of two versions; no skill is named as a prompt is."""
        return {**self.texts("skills", skills), **self.texts("prompts", prompts)}

    def right(self, salt: str | None, question: Question, texts: Mapping[str, str]) -> bool:
        """Whether an agent with these skills and prompts is right on a question."""
        text = texts[skill_file(question.task_type, texts)] + texts.get(SYSTEM_PROMPT, "")
        chance = 0.95 if "GOOD" in text else 0.05 if "BAD" in text else 0.5
        return draw(str(salt), question.question_id, text) < chance

    def record_answer(self, run_id: str, salt: str | None, question: Question, texts: Mapping[str, str]) -> Prediction:
        right = self.right(salt, question, texts)
        made = Prediction(
            run_id,
            question.question_id,
            question.video_id,
            question.task_type,
            "A" if right else "B",
            "A",
            right,
            "error" if self.endpoint_down else "finished",
            2,
            100,
            10,
            3,
            0,
            "connection refused" if self.endpoint_down else "",
            question.unit_id,
        )
        self.predictions[run_id, question.question_id] = made
        return made


def version(kind: str, name: str, parent: str, texts: Mapping[str, str], trigger: str = "") -> Version:
    files = tuple(
        VersionFile(file, texts[file], hashlib.sha256(texts[file].encode()).hexdigest()) for file in sorted(texts)
    )
    return Version(
        kind, name, parent, "evolution", trigger, "", files, hashlib.sha256(repr(files).encode()).hexdigest()
    )


class Silent:
    """Progress that nobody watches."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def phase(self, *args: Any, **kwargs: Any) -> None: ...
    def answered(self, answer: Any) -> None: ...
    def advanced(self, done: int, total: int) -> None: ...
    def gate_event(self, event: Any) -> None: ...
    def note(self, text: str) -> None:
        self.notes.append(text)


def outcome_of(world: World) -> str:
    """Everything that a training decided, times aside, as one text to compare."""
    best = world.manifest.best.hard
    versions = [
        (kind, each.version, each.parent, each.texts, each.trigger_run)
        for kind in ("skills", "prompts")
        for each in world.versions[kind]
    ]
    return json.dumps(
        {
            "versions": versions,
            "current": dataclasses.asdict(world.manifest.current),
            "best": None if best is None else dataclasses.asdict(best),
            "steps": [dataclasses.asdict(world.steps[key]) for key in sorted(world.steps)],
            "epochs": [dataclasses.asdict(world.epochs[key]) for key in sorted(world.epochs)],
            "estimates": sorted(dataclasses.astuple(each) for each in world.estimates.values()),
            "holdouts": sorted(str(each) for each in world.holdouts.values()),
            "predictions": sorted(f"{run} {q} {each.correct}" for (run, q), each in world.predictions.items()),
        },
        sort_keys=True,
    )
