"""What the evolver counts beside its calls."""

from services.evolver.use_cases.diagnose_run import RunDiagnosis
from services.evolver.use_cases.propose_edit import Proposal
from services.runtime.metrics import counter

_DIAGNOSES = counter("videotree_evolver_diagnoses", "Wrong answers diagnosed", ["category", "tier"])
_PROPOSALS = counter("videotree_evolver_proposals", "Proposals made", ["status"])
_EDITS = counter("videotree_evolver_edits", "Edits proposed", ["status"])


def count_diagnoses(result: RunDiagnosis) -> None:
    """Count the diagnoses of a run by category and tier."""
    for diagnosis in result.diagnoses:
        _DIAGNOSES.labels(diagnosis.explanation.category.value, diagnosis.tier.value).inc()


def count_proposal(proposal: Proposal) -> None:
    """Count a proposal and its edits by what became of them."""
    _PROPOSALS.labels(proposal.status.value).inc()
    for outcome in proposal.outcomes:
        _EDITS.labels(outcome.status.value).inc()
