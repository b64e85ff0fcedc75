"""Diagnosing the wrong answers of a run and packing the cases for the proposals."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from services.evolver.domain.case import Case
from services.evolver.domain.case_pack import CasePack, PackLimits, build_case_pack
from services.evolver.domain.diagnosis import Diagnosis, too_many_degraded
from services.evolver.domain.errors import DegradedJudgement, InvalidRequest
from services.evolver.domain.fingerprint import case_fingerprint
from services.evolver.domain.metrics import question_metrics
from services.evolver.use_cases.diagnose_case import DiagnoseCase
from services.evolver.use_cases.in_parallel import in_parallel
from services.evolver.use_cases.load_cases import LoadedRun, load_run
from services.evolver.use_cases.ports import Origin, QuestionDetails, RunArchive
from services.skills import skill_file

Progress = Callable[[int, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class DiagnoseJob:
    """What to diagnose; see the request of the same name."""

    workspace: str
    run_id: str
    dataset: str
    question_ids: tuple[str, ...]
    skills_version: str
    prompts_version: str
    with_case_packs: bool = False
    tolerate_degraded: bool = False
    known_fingerprints: frozenset[str] = frozenset()
    max_steps: int = 0
    with_pooled_pack: bool = False


@dataclass(frozen=True, slots=True)
class RunDiagnosis:
    """The diagnoses by question id, the packs by task type, and the counts of the run's predictions.

    `pooled_pack` holds the cases of all types within the bounds of one pack, without type and target; None unless
    asked for.
    """

    diagnoses: tuple[Diagnosis, ...]
    case_packs: tuple[CasePack, ...]
    right_count: int
    wrong_count: int
    infra_count: int
    known_count: int
    pooled_pack: CasePack | None = None

    @property
    def degraded_count(self) -> int:
        """How many diagnoses are degraded."""
        return sum(diagnosis.degraded for diagnosis in self.diagnoses)


class DiagnoseRun:
    """Diagnoses all wrong, non-INFRA predictions of a run with bounded concurrency."""

    def __init__(
        self, archive: RunArchive, case: DiagnoseCase, limits: PackLimits, workers: int, templates_sha256: str
    ) -> None:
        self._archive = archive
        self._case = case
        self._limits = limits
        self._workers = workers
        self._templates_sha256 = templates_sha256

    async def run(self, job: DiagnoseJob, progress: Progress) -> RunDiagnosis:
        """Return the diagnosis; its details are stored first, and `progress` is told (done, total) after each case.

        Raises UnknownRun, StoreUnavailable, and DegradedJudgement when more than half of the cases are degraded.
        """
        _check(job)
        loaded = await load_run(
            self._archive,
            job.workspace,
            job.run_id,
            job.dataset,
            job.question_ids,
            job.skills_version,
            job.max_steps,
        )
        prints = await self._fingerprints(job, loaded.cases)
        wrong = [case for case in loaded.cases if not case.answered.correct]
        open_cases = [case for case in wrong if prints[case.question.question_id] not in job.known_fingerprints]
        diagnoses = await self._diagnosed(open_cases, prints, Origin(job.workspace, job.run_id), progress)
        await self._archive.save_details(job.workspace, job.run_id, _details(loaded.cases, diagnoses))
        if not job.tolerate_degraded:
            _refuse_degraded(diagnoses)
        return RunDiagnosis(
            tuple(diagnoses[question_id] for question_id in sorted(diagnoses)),
            self._packs(loaded, diagnoses) if job.with_case_packs else (),
            right_count=len(loaded.cases) - len(wrong),
            wrong_count=len(wrong),
            infra_count=len(loaded.infra_task_types),
            known_count=len(wrong) - len(open_cases),
            pooled_pack=self._pooled(loaded, diagnoses) if job.with_pooled_pack else None,
        )

    async def _fingerprints(self, job: DiagnoseJob, cases: Sequence[Case]) -> Mapping[str, str]:
        prompts = await self._archive.prompts_sha256(job.workspace, job.prompts_version)
        both = hashlib.sha256(f"{prompts}\n{self._templates_sha256}".encode()).hexdigest()
        return {case.question.question_id: case_fingerprint(case, both) for case in cases}

    async def _diagnosed(
        self, cases: Sequence[Case], prints: Mapping[str, str], origin: Origin, progress: Progress
    ) -> dict[str, Diagnosis]:
        pending = iter(cases)
        found: dict[str, Diagnosis] = {}
        telling = asyncio.Lock()

        async def work() -> None:
            for case in pending:
                diagnosis = await self._case.diagnose(case, prints[case.question.question_id], origin)
                async with telling:
                    found[diagnosis.question_id] = diagnosis
                    await progress(len(found), len(cases))

        await progress(0, len(cases))
        await in_parallel(work() for _ in range(min(self._workers, len(cases))))
        return found

    def _packs(self, loaded: LoadedRun, diagnoses: Mapping[str, Diagnosis]) -> tuple[CasePack, ...]:
        by_type: dict[str, list[Case]] = {}
        for case in loaded.cases:
            by_type.setdefault(case.question.task_type, []).append(case)
        return tuple(
            build_case_pack(
                task_type,
                skill_file(task_type, loaded.skill_files),
                by_type[task_type],
                diagnoses,
                loaded.infra_task_types.count(task_type),
                self._limits,
            )
            for task_type in sorted(by_type)
        )

    def _pooled(self, loaded: LoadedRun, diagnoses: Mapping[str, Diagnosis]) -> CasePack:
        return build_case_pack("", "", loaded.cases, diagnoses, len(loaded.infra_task_types), self._limits)


def _check(job: DiagnoseJob) -> None:
    for field, value in (("skills_version", job.skills_version), ("prompts_version", job.prompts_version)):
        if not value:
            raise InvalidRequest(f"{field} is empty", field=field)
    if job.max_steps < 0:
        raise InvalidRequest(f"max_steps is {job.max_steps}, below 0", field="max_steps")


def _details(cases: Sequence[Case], diagnoses: Mapping[str, Diagnosis]) -> list[QuestionDetails]:
    details = []
    for case in cases:
        diagnosis = diagnoses.get(case.question.question_id)
        findings = diagnosis.findings if diagnosis else ()
        details.append(QuestionDetails(case.question.question_id, question_metrics(case), findings))
    return details


def _refuse_degraded(diagnoses: Mapping[str, Diagnosis]) -> None:
    degraded = [diagnosis for diagnosis in diagnoses.values() if diagnosis.degraded]
    if too_many_degraded(len(degraded), len(diagnoses)):
        raise DegradedJudgement(len(degraded), len(diagnoses), degraded[0].explanation.why)
