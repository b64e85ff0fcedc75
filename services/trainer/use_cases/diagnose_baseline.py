"""Offline diagnosis of the baseline, stored by fingerprint in one batch (TRN-3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from services.trainer.domain.diagnoses import CaseDiagnosis, DiagnoseJob, DiagnoseProgress, DiagnoseResult, Diagnosis
from services.trainer.domain.errors import ServiceFailed, WorkspaceProblem
from services.trainer.domain.workspaces import Manifest
from services.trainer.use_cases.baseline import BASELINE_RUN, baseline_settings
from services.trainer.use_cases.ports import Progress, Services

UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True)
class OfflineDiagnosis:
    """What a call of the command did: rows written and skipped, and the tiers of all rows now known."""

    diagnosed: int
    known: int
    degraded: int
    right: int
    infra: int
    tiers: Mapping[str, int]


async def diagnose_baseline(
    services: Services, progress: Progress, manifest: Manifest, *, retry_uncertain: bool
) -> OfflineDiagnosis:
    """Diagnoses the baseline's wrong answers that have no row yet; with `retry_uncertain` also the uncertain ones.

    Raises WorkspaceProblem for a workspace without a baseline.
    """
    max_steps = await _step_limit(services, manifest.name)
    earlier = await services.ledger.baseline_diagnoses(manifest.name, BASELINE_RUN)
    done = [each for each in earlier if not (retry_uncertain and each.tier.lower() == UNCERTAIN)]
    progress.phase("diagnosis")
    job = DiagnoseJob(
        workspace=manifest.name,
        run_id=BASELINE_RUN,
        dataset=manifest.current.questions,
        question_ids=(),
        skills_version="v1",
        prompts_version="v1",
        with_case_packs=False,
        tolerate_degraded=True,
        known_fingerprints=tuple(each.fingerprint for each in done),
        max_steps=max_steps,
    )
    result: DiagnoseResult | None = None
    async for event in services.evolver.diagnose(job):
        if isinstance(event, DiagnoseProgress):
            progress.advanced(event.done_count, event.total_count)
        else:
            result = event
    if result is None:
        raise ServiceFailed("evolver", "DATA_LOSS", "the diagnosis ended without a result; run the command again")
    fresh = [_row(each) for each in result.diagnoses]
    if fresh:
        await services.ledger.put_baseline_diagnoses(manifest.name, fresh)
    rows = {each.fingerprint: each for each in (*earlier, *fresh)}
    return OfflineDiagnosis(
        diagnosed=len(fresh),
        known=result.known_count,
        degraded=result.degraded_count,
        right=result.right_count,
        infra=result.infra_count,
        tiers=dict(sorted(Counter(each.tier for each in rows.values()).items())),
    )


async def _step_limit(services: Services, workspace: str) -> int:
    """The limit under which the baseline was answered, which need not be that of today's configuration."""
    settings = await baseline_settings(services, workspace)
    if settings is None:
        raise WorkspaceProblem(f"workspace {workspace} has no baseline; run `videotree baseline` first")
    return int(settings.get("max_steps", 0))


def _row(diagnosis: CaseDiagnosis) -> Diagnosis:
    return Diagnosis(
        run_id=BASELINE_RUN,
        question_id=diagnosis.question_id,
        fingerprint=diagnosis.fingerprint,
        tier=stored_tier(diagnosis.tier),
        category=diagnosis.category,
        cause=diagnosis.cause,
        degraded=diagnosis.degraded,
        why=diagnosis.why,
        evidence_json=diagnosis.evidence_json or "{}",
    )


def stored_tier(tier: str) -> str:
    """A tier as the store spells it: T2, T1 or uncertain."""
    return tier.upper() if tier in {"t1", "t2"} else tier
