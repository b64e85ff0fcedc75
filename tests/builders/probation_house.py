"""A training whose provisional accepts turn out as planned: real store process, real gate, scripted answers and edits.

Each type has a plan of its val units in the order in which the split declares them: W is a unit that the new text wins
against its predecessor, L one that it loses, B and N ties. A plan with a bar, such as "WL|BN", changes from epoch to
epoch; its last part stays. In the gate itself every candidate wins every unit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.gate.config import GateConfig
from services.gate.main import build as build_gate
from services.questions import Question
from services.runtime.bundled import bundled_path
from services.runtime.testing import local_server
from services.skills import slug, text_sha256
from services.templates import read_folder
from services.trainer.adapters.wiring import connected
from services.trainer.config import TrainerConfig
from services.trainer.domain.answering import Answer, AnswerJob
from services.trainer.domain.diagnoses import Case, CasePack, DiagnoseJob, DiagnoseResult
from services.trainer.domain.evolution import Edit, EditResult, Proposal, ProposalRequest
from services.trainer.domain.pools import Pools, PoolUnit
from services.trainer.use_cases.open_run import gather_run, resume_run, start_run
from services.trainer.use_cases.ports import Services
from services.trainer.use_cases.train import train
from tests.fakes.in_memory_answering import skill
from tests.fakes.store_process import StoreProcess, store_process
from tests.fakes.storing_agent import StoringAgent, storing_agent_parts
from tests.fakes.trainer_world import Silent

WORKSPACE, RUN, BASELINE = "lab", "trial", "baseline"
NEW = "Look twice."
DIAG = 8
Plan = Mapping[str, str]
"""Type to the plan of its val units."""


class StoreKilled(Exception):
    """The store was killed where the test said."""


def settings(**changed: Any) -> TrainerConfig:
    """Ladders of five units: five wins of five are accepted provisionally."""
    small: dict[str, Any] = {
        "epochs": 2,
        "max_steps_per_epoch": 1,
        "gate_n_max": 5,
        "holdout_test": False,
        "slow_update": False,
        "early_stop_patience": 0,
        "probation_units": 12,
        "eval_min_per_class": 2,
    }
    return TrainerConfig(**{**small, **changed})


def units_of(plan: Plan) -> list[tuple[PoolUnit, str]]:
    """Each unit with the letters of its plan, one an epoch; ids fall while the declared order rises: the two differ."""
    found = []
    for kind, letters in plan.items():
        epochs = ["N" * DIAG + part for part in letters.split("|")]
        for number, by_epoch in enumerate(zip(*epochs, strict=True)):
            name = f"{slug(kind)}-{99 - number}"
            pool = "diag" if number < DIAG else "val"
            found.append((PoolUnit(name, kind, "", (f"{name}-q",), pool), "".join(by_epoch)))
    return found


def questions_of(plan: Plan) -> dict[str, Question]:
    """The question of each unit."""
    return {
        unit.question_ids[0]: Question(
            unit.question_ids[0], "", unit.task_type, f"What is {unit.unit_id}?", ("rain", "snow"), "A", unit.unit_id
        )
        for unit, _ in units_of(plan)
    }


def skills_of(plan: Plan) -> dict[str, str]:
    """A skill for each type, and the one for all others."""
    own = {f"{slug(kind)}.md": skill(slug(kind), kind, "Look.\n") for kind in plan}
    return {**own, "default-strategy.md": skill("default-strategy", "default", "Look.\n")}


def right(plan: Plan) -> Any:
    """The rule by which questions are answered."""
    letters = {unit.unit_id: letter for unit, letter in units_of(plan)}

    def rule(run_id: str, question: Question, text: str) -> bool:
        if "_gate_" in run_id:
            return run_id.endswith("_cand")
        epoch = re.search(r"_e(\d+)_", run_id)
        planned = letters[question.unit_id]
        letter = planned[min(int(epoch[1]) if epoch else 0, len(planned) - 1)]
        return letter in ("WB" if NEW in text else "LB")

    return rule


class OneEndpoint:
    """The models' port: nothing ever fails."""

    async def endpoints(self) -> tuple[()]:
        return ()


class ScriptedEvolver:
    """Proposes the new text for every type that has not got it, unless it was refused before."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.refused: dict[str, tuple[str, ...]] = {}

    async def diagnose(self, job: DiagnoseJob) -> AsyncIterator[DiagnoseResult]:
        packs = tuple(self._pack(kind) for kind in sorted(self._plan))
        yield DiagnoseResult((), packs, 0, len(job.question_ids), 0, 0, 0, None)

    async def propose(self, request: ProposalRequest) -> Proposal:
        kind, current = request.case_pack.task_type, request.current_text
        self.refused[kind] = tuple(each.reason for each in request.rejected)
        if NEW in current:
            return Proposal("skipped", "", (), (), ("nothing to change",), False, (), 1, "", "")
        text = f"{current}{NEW}\n"
        fingerprint = text_sha256(text)
        if fingerprint in {each.fingerprint for each in request.rejected}:
            return Proposal("repeated", "", (), (), (), False, (), 1, fingerprint, "")
        edit = EditResult(Edit("append", "", NEW, "it helps", ("q",)), "applied", "")
        return Proposal("candidate", text, (edit,), (), (), False, (), 1, fingerprint, "diff")

    def _pack(self, kind: str) -> CasePack:
        unit = next(unit for unit, _ in units_of(self._plan) if unit.task_type == kind)
        case = Case(unit.question_ids[0], unit.unit_id, "text", None, False)
        return CasePack(kind, f"{slug(kind)}.md", (case,), (), "{}", (unit.unit_id,))


@dataclass(frozen=True)
class House:
    """The services of one life of the store."""

    store: StoreProcess
    services: Services
    evolver: ScriptedEvolver
    plan: Plan

    async def train(self, *, resume: bool = False, **changed: Any) -> list[str]:
        """Train to the end; returns the notes that a person would have read."""
        progress = Silent()
        run = await gather_run(self.services, progress, settings(**changed).training_settings(), WORKSPACE, RUN)
        checkpoint = await (resume_run(run, "") if resume else start_run(run, ""))
        await train(run, checkpoint, _no_limit)
        return progress.notes

    def killing(self, method: str, epoch: int, *, after: bool) -> House:
        """The house in which the store dies before or after it is asked to commit that epoch by `method`."""
        ledger = _KillingLedger(self, method, epoch, after)
        return dataclasses.replace(self, services=dataclasses.replace(self.services, ledger=ledger))  # type: ignore[arg-type]

    def killing_in_answers(self, run_id: str, count: int) -> House:
        """The house in which the store dies when `count` answers of that run have come."""
        agent = _KillingAgent(self, run_id, count)
        return dataclasses.replace(self, services=dataclasses.replace(self.services, agent=agent))


class _KillingAgent:
    def __init__(self, house: House, run_id: str, count: int) -> None:
        self._house, self._run_id, self._count = house, run_id, count

    async def answer(self, job: AnswerJob) -> AsyncIterator[Answer]:
        got = 0
        async for answer in self._house.services.agent.answer(job):
            yield answer
            got += job.run_id == self._run_id
            if got == self._count:
                await self._house.store.kill()
                raise StoreKilled


class _KillingLedger:
    def __init__(self, house: House, method: str, epoch: int, after: bool) -> None:
        self._house, self._method, self._epoch, self._after = house, method, epoch, after

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._house.services.ledger, name)
        return self._deadly(call) if name == self._method else call

    def _deadly(self, call: Any) -> Any:
        async def commit(decision: Any) -> Any:
            if decision.epoch != self._epoch:
                return await call(decision)
            if self._after:
                await call(decision)
            await self._house.store.kill()
            raise StoreKilled

        return commit


@contextlib.asynccontextmanager
async def probation_house(data: Path, plan: Plan) -> AsyncIterator[House]:
    """One life of the store on this data root, with the services around it; filled when it is empty."""
    data.mkdir(exist_ok=True)
    async with store_process(data) as store:
        agent = StoringAgent(store.client, questions_of(plan), right(plan))
        async with local_server("inference", storing_agent_parts(agent)) as inference:
            to_inference = f"127.0.0.1:{inference.port}"
            config = GateConfig(port=0, metrics_port=0, store_address=store.address, inference_address=to_inference)
            async with local_server("gate", await build_gate(config)) as gate:
                addresses = {
                    "store": store.address,
                    "inference": to_inference,
                    "gate": f"127.0.0.1:{gate.port}",
                    "evolver": "127.0.0.1:1",
                }
                async with connected(addresses, 30.0) as services:
                    evolver = ScriptedEvolver(plan)
                    services = dataclasses.replace(services, models=OneEndpoint(), evolver=evolver)  # type: ignore[arg-type]
                    if WORKSPACE not in await services.workspaces.names():
                        await _fill(services, store, plan)
                    yield House(store, services, evolver, plan)


async def _fill(services: Services, store: StoreProcess, plan: Plan) -> None:
    questions = questions_of(plan)
    await services.library.import_questions("d", list(questions.values()), force=False)
    prompts = read_folder(bundled_path("prompts"), ["agent", "tools"])
    await services.workspaces.create_from_files(WORKSPACE, "d", skills_of(plan), prompts)
    agent = StoringAgent(store.client, questions, right(plan))
    for question_id in questions:
        await agent.record(WORKSPACE, BASELINE, question_id, skills_of(plan))
    pools = Pools(BASELINE, "d", tuple(unit for unit, _ in units_of(plan)), "")
    await services.workspaces.freeze_pools(WORKSPACE, pools, "{}", force=False)


async def _no_limit() -> None:
    return None
