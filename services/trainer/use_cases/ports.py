"""What the trainer's use cases need from the outside.

All methods raise ServiceFailed when the service answers with an error or not at all, and nothing else of the
transport. What they return is complete: pages are followed to the end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from services.questions import Question
from services.trainer.domain.answering import Answer, AnswerJob
from services.trainer.domain.checkpoint import Checkpoint, Fingerprints
from services.trainer.domain.decisions import Committed, EpochDecision, StepDecision
from services.trainer.domain.diagnoses import DiagnoseJob, DiagnoseProgress, DiagnoseResult, Diagnosis, EvidenceScore
from services.trainer.domain.endpoints import CacheStats, Endpoint
from services.trainer.domain.evaluations import DualMetric, HoldoutEval, HoldoutTable, UnitEstimate
from services.trainer.domain.evolution import (
    AppendixRequest,
    AppendixUpdate,
    Proposal,
    ProposalRequest,
    SlowUpdate,
    SlowUpdateRequest,
)
from services.trainer.domain.gate_round import GateEvent, GateRound, ProbationPair, ProbationReview, VerdictParameters
from services.trainer.domain.gate_simulation import FlipRates, Simulation
from services.trainer.domain.ladders import Ladder, LadderCandidate
from services.trainer.domain.pools import Dataset, Pools
from services.trainer.domain.runs import CallSummary, Prediction, Run
from services.trainer.domain.schedule import Position
from services.trainer.domain.step_rows import EvolutionRecordRow, GateEvidenceRow, QuadrantPairRow, StepReportRow
from services.trainer.domain.versions import Version, VersionChange
from services.trainer.domain.workspaces import BackupCopy, Manifest, Seed
from services.trainer.use_cases.import_ports import LibraryWriter

T = TypeVar("T")


class Library(LibraryWriter, Protocol):
    """Videos and questions that every workspace shares."""

    async def datasets(self) -> list[Dataset]:
        """All question sets by name."""

    async def questions(self, dataset: str) -> list[Question]:
        """A set's questions in file order."""


class Workspaces(Protocol):
    """Workspaces, seeds, frozen pools and report files."""

    async def create_from_files(
        self, name: str, dataset: str, skills: Mapping[str, str], prompts: Mapping[str, str]
    ) -> Manifest:
        """Makes a workspace whose v1 skills and prompts are these files; an existing one is refused."""

    async def create_from_seed(self, name: str, seed: str, *, force: bool) -> Manifest:
        """Makes a workspace as a copy of a seed; an existing one is refused without force."""

    async def get(self, name: str) -> tuple[Manifest, str]:
        """The manifest, and the workspace's folder as the store sees it (for people)."""

    async def names(self) -> list[str]:
        """The names of all workspaces, in ascending order."""

    async def set_current(self, name: str, current: Mapping[str, str], etag: str) -> Manifest:
        """Changes what the workspace uses now; a stale etag is refused."""

    async def record_run(self, name: str, run_id: str) -> Manifest:
        """Appends a snapshot of what is current for a run; the same run twice is one entry."""

    async def freeze_pools(self, name: str, pools: Pools, split_manifest_json: str, *, force: bool) -> tuple[str, str]:
        """Freezes a split; returns its sha256 and the name of the backup that force made (empty when none)."""

    async def pools(self, name: str) -> tuple[Pools, str]:
        """The frozen split, checked against the manifest, and its manifest as JSON."""

    async def init_seed(
        self, seed: str, workspace: str, run_id: str, skills_version: str, prompts_version: str, *, force: bool
    ) -> tuple[Seed, int]:
        """Makes a seed with the workspace's pools; returns it and the number of duplicate rows left out."""

    async def seeds(self) -> list[Seed]:
        """All seeds by name."""

    async def write_report(self, workspace: str, name: str, content: bytes) -> str:
        """Writes a file below reports/ atomically; returns its path as the store sees it."""

    async def backup(self, workspace: str, copy: str) -> BackupCopy:
        """Makes a consistent copy of a workspace while the store serves."""

    async def restore(self, copy: str, workspace: str) -> Manifest:
        """Makes a workspace from a copy; never overwrites one."""


class Versions(Protocol):
    """Immutable versions of skills and prompts; `kind` is skills or prompts."""

    async def get(self, workspace: str, kind: str, version: str) -> Version:
        """A version with its files' texts."""

    async def all(self, workspace: str, kind: str) -> list[Version]:
        """All versions in the order they were published, without texts."""

    async def publish(self, workspace: str, change: VersionChange) -> Version:
        """Makes the next version; content identical to the parent returns the parent."""

    async def diff(self, workspace: str, kind: str, old: str, new: str) -> str:
        """The unified diff of two versions; empty when equal."""


class Runs(Protocol):
    """Runs and what they answered."""

    async def register(self, workspace: str, run: Run) -> bool:
        """Registers a run, or sets a known one back to running; returns whether it is new."""

    async def finish(self, workspace: str, run_id: str, status: str, detail: str) -> None:
        """Ends a run as finished, failed or stopped."""

    async def get(self, workspace: str, run_id: str) -> Run:
        """A run; changes nothing."""

    async def all(self, workspace: str, kind: str = "") -> list[Run]:
        """Runs in order of start; only those of `kind` where one is given; gate arms never."""

    async def predictions(self, workspace: str, run_id: str) -> list[Prediction]:
        """A run's predictions by question; empty when it has none."""

    async def call_summaries(self, workspace: str, run_id: str) -> list[CallSummary]:
        """Sums of the model calls made for a run and the runs derived from it."""


class Ledger(Protocol):
    """What steps and epochs decided. Commits are keyed, so repeating one changes nothing."""

    async def holding(self, workspace: str, run_id: str, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work`, during which no other training works on the workspace.

        Raises ServiceFailed (FAILED_PRECONDITION) naming who does already, before the work starts or while it goes on.
        """

    async def clear_step(self, workspace: str, run_id: str, epoch: int, step: int) -> bool:
        """Removes what a re-run of the step will write; returns whether the step was committed already."""

    async def commit_step(self, decision: StepDecision) -> Committed:
        """Commits all that a step decided in one transaction."""

    async def commit_epoch(self, decision: EpochDecision) -> Committed:
        """Commits all that an epoch's end decided in one transaction."""

    async def save_checkpoint(self, workspace: str, checkpoint: Checkpoint) -> None:
        """Writes a checkpoint by itself, at the start of a training."""

    async def load_checkpoint(self, workspace: str, run_id: str, fingerprints: Fingerprints | None) -> Checkpoint:
        """A run's checkpoint; `fingerprints` that differ from the saved ones are refused."""

    async def step_reports(self, workspace: str, run_id: str) -> list[StepReportRow]:
        """Step reports by (epoch, step, type)."""

    async def gate_evidence(self, workspace: str, run_id: str) -> list[GateEvidenceRow]:
        """Gate evidence by (epoch, step, type, rank)."""

    async def quadrant_pairs(self, workspace: str, run_id: str) -> list[QuadrantPairRow]:
        """Quadrants by (epoch, step, type, unit)."""

    async def evolution_records(self, workspace: str, run_id: str) -> list[EvolutionRecordRow]:
        """Evolution records by (epoch, step, target)."""

    async def dual_metrics(self, workspace: str, run_id: str) -> list[DualMetric]:
        """Evaluations by (epoch, version kind, pool)."""

    async def put_holdout_eval(self, workspace: str, holdout_eval: HoldoutEval) -> None:
        """Writes the intent or the result of a held-out evaluation; a result is never replaced by an intent."""

    async def holdout_table(self, workspace: str, run_id: str) -> HoldoutTable:
        """Held-out evaluations by version pair, and the lines of each epoch."""

    async def unit_estimates(self, workspace: str, run_id: str) -> list[UnitEstimate]:
        """Running estimates by unit; empty before the first observed epoch."""

    async def put_baseline_diagnoses(self, workspace: str, diagnoses: Sequence[Diagnosis]) -> int:
        """Writes offline diagnoses by fingerprint; returns the number of rows."""

    async def baseline_diagnoses(self, workspace: str, run_id: str) -> list[Diagnosis]:
        """Offline diagnoses of a run by fingerprint."""


class Agent(Protocol):
    """The agent that answers questions."""

    def answer(self, job: AnswerJob) -> AsyncIterator[Answer]:
        """Each answer after it is durable in the store, in order of completion; leaving early stops the rest."""


class Models(Protocol):
    """Endpoints, breakers and the response cache."""

    async def endpoints(self) -> tuple[Endpoint, ...]:
        """All endpoints by name."""

    async def probe(self, role: str) -> None:
        """Makes a real call of one token for a role, past the cache."""

    async def reset_breaker(self, endpoint: str) -> Endpoint:
        """Closes an endpoint's breaker and forgets its failures."""

    async def open_breaker(self, endpoint: str) -> Endpoint:
        """Opens an endpoint's breaker for its configured cooldown."""

    async def cache_stats(self) -> CacheStats:
        """Figures about the response cache."""

    async def extend_cache(self, ttl_seconds: int) -> tuple[int, int]:
        """Renews every entry whose remaining life is shorter; returns entries renewed and entries seen."""

    async def purge_cache(self, salt: str | None) -> int:
        """Removes the entries of one salt, or those without one; returns how many."""


class Gate(Protocol):
    """The gate."""

    def validate(self, gate_round: GateRound) -> AsyncIterator[GateEvent]:
        """What happens in a round; the last event is its outcome; leaving early cancels it."""

    async def build_ladder(
        self,
        namespace: str,
        task_type: str,
        epoch: int,
        step: int,
        candidates: Sequence[LadderCandidate],
        excluded_unit_ids: Sequence[str],
        n_max: int,
    ) -> Ladder:
        """The units in their declared order; `namespace` is part of the permutation's seed."""

    async def review_probation(
        self,
        pairs: Sequence[ProbationPair],
        e_rollback: float,
        probation_units: int,
        parameters: VerdictParameters,
    ) -> ProbationReview:
        """Reviews a provisional accept from its later pairs."""

    async def simulate(
        self, parameters: VerdictParameters, ladder_length: int, gate_count: int, cells: Sequence[FlipRates], seed: int
    ) -> Simulation:
        """Simulates gates of given flip rates."""


class Evolver(Protocol):
    """Diagnosis and edits."""

    def diagnose(self, job: DiagnoseJob) -> AsyncIterator[DiagnoseProgress | DiagnoseResult]:
        """Progress, then the result as the last item."""

    async def propose(self, request: ProposalRequest) -> Proposal:
        """Proposes edits for one target and applies them."""

    async def consolidate_appendix(self, request: AppendixRequest) -> AppendixUpdate:
        """Adds reminders to a skill's appendix."""

    async def slow_update(self, request: SlowUpdateRequest) -> SlowUpdate:
        """Writes the momentum block of each skill."""

    def score_evidence(
        self, workspace: str, run_id: str, dataset: str, question_ids: Sequence[str]
    ) -> AsyncIterator[EvidenceScore]:
        """Rates the evidence given for a run's answers, blind to right and wrong."""


class Progress(Protocol):
    """Where a person follows a run. Nothing depends on it, and it must not raise."""

    def phase(self, name: str, total: int | None = None, position: Position | None = None) -> None:
        """A piece of work begins; `total` is its size in questions where that is known."""

    def answered(self, answer: Answer) -> None:
        """A question of the current piece of work was answered."""

    def advanced(self, done: int, total: int) -> None:
        """The current piece of work is this far."""

    def gate_event(self, event: GateEvent) -> None:
        """Something happened in a gate round."""

    def note(self, text: str) -> None:
        """One line that stays on the screen."""


@dataclass(frozen=True, slots=True)
class Services:
    """All ports of a trainer, as the composition root wires them."""

    library: Library
    workspaces: Workspaces
    versions: Versions
    runs: Runs
    ledger: Ledger
    agent: Agent
    models: Models
    gate: Gate
    evolver: Evolver
