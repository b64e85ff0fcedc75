"""What can go wrong in the evolver.

EvolverError                      a fault with an optional request field and metadata
├── InvalidRequest                a request that can't be served as it stands (names the field)
│   └── UnusableTarget            a file that can't be evolved: no front matter, faulty markers, faulty template
├── UnknownRun                    the store has no predictions for what was asked
├── DegradedJudgement             more than half of the cases have no trustworthy diagnosis
├── StoreUnavailable              the store can't be reached
└── ModelUnavailable              a model call failed (infrastructure), with what the inference service said

AnswerFault                       a model's answer that can't be read; never leaves the service
"""

from collections.abc import Mapping, Sequence


class EvolverError(Exception):
    """Base class; `field` is the path of the request field at fault, `metadata` the figures for the caller."""

    def __init__(self, message: str, *, field: str | None = None, metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.metadata = dict(metadata or {})


class InvalidRequest(EvolverError):
    """A request that can't be served as it stands."""


class UnusableTarget(InvalidRequest):
    """A file that can't be evolved."""


class UnknownRun(EvolverError):
    """The store has no predictions for what was asked."""


class DegradedJudgement(EvolverError):
    """More than half of the cases have no trustworthy diagnosis."""

    def __init__(self, degraded: int, cases: int, first_reason: str) -> None:
        super().__init__(
            f"{degraded} of {cases} diagnosed cases are degraded, more than half: the judge can't be relied on "
            f"(first reason: {first_reason})",
            metadata={"degraded": str(degraded), "cases": str(cases), "first_reason": first_reason[:500]},
        )


class StoreUnavailable(EvolverError):
    """The store can't be reached."""


class ModelUnavailable(EvolverError):
    """A model call failed for a reason of the infrastructure."""


class AnswerFault(Exception):
    """A model's answer that can't be read; `faults` says everything that is wrong with it, for the retry."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)
