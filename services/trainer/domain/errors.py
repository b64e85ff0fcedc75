"""Errors of the trainer.

TrainerError                      something a person has to act on; its text says what
├── InfeasibleSplit               no split satisfies the parameters (figures included)
├── NothingTrainable              every task type fell to the trainability check
├── MissingResults                a diag question or ladder unit has no known result
├── WorkspaceProblem              a workspace, seed, run or version is absent or in the wrong state
├── EndpointDown                  a piece of work in which every model call failed
├── ServiceFailed                 a service answered with an error or not at all
├── RunBroken                     a training that broke off; says why, and the command that goes on with it
├── StackFailed                   an embedded service did not start or died
└── BudgetReached                 a stop, not a fault: a limit on calls, tokens or minutes is used up
"""

from __future__ import annotations

from collections.abc import Sequence


class TrainerError(Exception):
    """Base of every error a person has to act on; `str()` is one line that says what to do."""


class InfeasibleSplit(TrainerError):
    """Val cannot reach the wanted number of wrong answers, however groups are moved (TRN-4)."""

    def __init__(self, val_wrong: int, wanted: int, trainval_wrong: int, moved_groups: int) -> None:
        self.val_wrong, self.wanted = val_wrong, wanted
        self.trainval_wrong, self.moved_groups = trainval_wrong, moved_groups
        super().__init__(
            f"val holds {val_wrong} wrong answers but val_wrong_min asks for {wanted}; "
            f"all of diag and val hold {trainval_wrong}, and {moved_groups} video groups were already moved: "
            f"lower val_wrong_min to at most {trainval_wrong} or give the split more questions"
        )


class NothingTrainable(TrainerError):
    """No task type has enough units to be judged (TRN-6)."""


class MissingResults(TrainerError):
    """Units or questions whose result must be known, but is not (TRN-6)."""

    def __init__(self, what: str, missing: Sequence[str], remedy: str) -> None:
        self.missing = tuple(missing)
        shown = ", ".join(self.missing[:5]) + (", ..." if len(self.missing) > 5 else "")
        super().__init__(f"{len(self.missing)} {what}: {shown}; {remedy}")


class WorkspaceProblem(TrainerError):
    """A workspace, seed, run or version is absent or not in the state that the command needs."""


class EndpointDown(TrainerError):
    """Every call of a piece of work failed: the endpoint is down, and nothing was scored (TRN-13b)."""


class ServiceFailed(TrainerError):
    """A service answered with an error status, or not at all."""

    def __init__(self, service: str, code: str, message: str, reason: str = "") -> None:
        self.service, self.code, self.reason = service, code, reason
        super().__init__(f"{service}: {message} ({code})")


class RunBroken(TrainerError):
    """A training broke off; the text says why, and with which command it goes on."""


class StackFailed(TrainerError):
    """A service of the embedded stack did not start, or died."""


class BudgetReached(TrainerError):
    """A limit on calls, tokens or minutes is used up; the run stops cleanly and can resume (TRN-12)."""
