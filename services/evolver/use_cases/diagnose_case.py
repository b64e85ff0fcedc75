"""The waterfall over one case: rules, then the judge, stopping at the first stage that explains it (EVO-3, EVO-4)."""

from collections.abc import Sequence

from services.evolver.domain.case import Case
from services.evolver.domain.diagnosis import Diagnosis, Explanation, Finding, degraded_explanation
from services.evolver.domain.errors import ModelUnavailable
from services.evolver.domain.metrics import question_metrics
from services.evolver.domain.rules import RULES
from services.evolver.domain.stages import JUDGE_STAGES, Bounds, JudgeStage
from services.evolver.use_cases.ask_model import AskModel
from services.evolver.use_cases.ports import ModelRole, Origin

_NO_CAUSE = "no stage of the diagnosis explains the wrong answer"


class DiagnoseCase:
    """Finds out why one answer was wrong."""

    def __init__(self, ask: AskModel, bounds: Bounds) -> None:
        self._ask = ask
        self._bounds = bounds

    async def diagnose(self, case: Case, fingerprint: str, origin: Origin) -> Diagnosis:
        """Return the diagnosis of a wrong answer. A judge that fails or finds no cause makes it degraded."""
        findings: list[Finding] = []
        try:
            explanation = await self._waterfall(case, origin, findings)
        except _NoJudgement as failure:
            explanation, degraded = degraded_explanation(str(failure)), True
        else:
            degraded = explanation is None
        return Diagnosis(
            case.question.question_id,
            case.question.unit_id,
            case.question.task_type,
            fingerprint,
            explanation or degraded_explanation(_no_cause(findings)),
            degraded,
            tuple(findings),
            question_metrics(case),
        )

    async def _waterfall(self, case: Case, origin: Origin, findings: list[Finding]) -> Explanation | None:
        for rule in RULES:
            findings.append(rule(case))
            if findings[-1].explanation:
                return findings[-1].explanation
        for stage in JUDGE_STAGES:
            finding = await self._judged(stage, case, origin)
            if finding is not None:
                findings.append(finding)
                if finding.explanation:
                    return finding.explanation
        return None

    async def _judged(self, stage: JudgeStage, case: Case, origin: Origin) -> Finding | None:
        values = stage.values(case, self._bounds)
        if values is None:
            return None
        try:
            answer = await self._ask.ask(
                stage.template, values, ModelRole.JUDGE, origin, lambda found: stage.read(case, found)
            )
        except ModelUnavailable as error:
            raise _NoJudgement(f"{stage.name}: the judge could not be asked: {error}") from error
        if answer.value is None:
            raise _NoJudgement(f"{stage.name}: the judge's answer could not be read: {_listed(answer.faults)}")
        return answer.value


class _NoJudgement(Exception):
    """The judge gave nothing that can be relied on."""


def _no_cause(findings: Sequence[Finding]) -> str:
    """Say that nothing explains the answer, and what the last stage that gave a reason said."""
    reasons = [f"{each.stage}: {each.details['why']}" for each in findings if each.details.get("why")]
    return "; ".join([_NO_CAUSE, *reasons[-1:]])


def _listed(faults: Sequence[str]) -> str:
    return "; ".join(faults[:3])
