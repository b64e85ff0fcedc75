"""Everything the gate refuses or gives up on.

GateError
├── InvalidRequest                 the caller must change the request
│   ├── InvalidParameter           a threshold out of its range, or NaN
│   ├── EmptyLadder                a type without a unit to test on
│   ├── DuplicateLadderUnit        a unit named twice in one ladder
│   ├── UnknownLadderUnit          a unit the workspace does not have
│   ├── OverlappingTargets         two types edit the same skill file
│   └── BadRunPrefix               a run id prefix that is no gate prefix
├── GuardTripped                   too many infrastructure faults: the round is aborted
├── AllUnitsExcluded               not one unit of a type could be counted
└── NeighbourFailed                a call to another service failed
    ├── MissingInStore             the store has no such workspace or version
    └── ArmFailed                  one arm's call failed: names type, unit and arm
        └── ArmRefused             ... and repeating it cannot help
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MAX_LISTED_UNITS = 5


class GateError(Exception):
    """Base of the tree; `field` is the path of the request field at fault, `metadata` the figures."""

    def __init__(self, message: str, *, field: str | None = None, metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.metadata: dict[str, str] = dict(metadata or {})


class InvalidRequest(GateError):
    """The request itself is wrong; repeating it cannot help."""


class InvalidParameter(InvalidRequest):
    """A parameter is out of its range or not a number."""

    def __init__(self, field: str, value: object, requirement: str) -> None:
        super().__init__(f"{field} must be {requirement}, got {value!r}", field=field, metadata={"value": repr(value)})
        self._value = value
        self._requirement = requirement

    def under(self, path: str) -> InvalidParameter:
        """The same fault, named from further up: its field is `path` and the field so far."""
        return InvalidParameter(f"{path}.{self.field}", self._value, self._requirement)


class EmptyLadder(InvalidRequest):
    """A type has no unit to be tested on."""

    def __init__(self, task_type: str, field: str) -> None:
        super().__init__(f"the ladder of {task_type!r} is empty", field=field, metadata={"task_type": task_type})


class DuplicateLadderUnit(InvalidRequest):
    """A ladder names a unit twice."""

    def __init__(self, task_type: str, unit_id: str, field: str | None = None) -> None:
        super().__init__(
            f"the ladder of {task_type!r} names unit {unit_id!r} twice",
            field=field,
            metadata={"task_type": task_type, "unit_id": unit_id},
        )


class UnknownLadderUnit(InvalidRequest):
    """A ladder names units that the workspace does not have; at most five are listed."""

    def __init__(self, task_type: str, unit_ids: Sequence[str], field: str | None = None) -> None:
        listed = ", ".join(unit_ids[:MAX_LISTED_UNITS])
        more = f" and {len(unit_ids) - MAX_LISTED_UNITS} more" if len(unit_ids) > MAX_LISTED_UNITS else ""
        super().__init__(
            f"the ladder of {task_type!r} names units the workspace does not have: {listed}{more}",
            field=field,
            metadata={"task_type": task_type, "unit_ids": listed, "count": str(len(unit_ids))},
        )


class OverlappingTargets(InvalidRequest):
    """Two types of one step edit the same skill file."""

    def __init__(self, file: str, first_type: str, second_type: str, field: str) -> None:
        super().__init__(
            f"{first_type!r} and {second_type!r} both edit {file!r}",
            field=field,
            metadata={"file": file, "task_types": f"{first_type}, {second_type}"},
        )


class BadRunPrefix(InvalidRequest):
    """A run id prefix that does not mark its rows as a gate's."""

    def __init__(self, prefix: str, field: str) -> None:
        super().__init__(f"run id prefix {prefix!r} must contain '_gate_'", field=field, metadata={"prefix": prefix})


class GuardTripped(GateError):
    """The share of infrastructure faults exceeded its limit; the whole round is aborted."""

    def __init__(self, task_type: str, faults: int, questions: int, limit: float) -> None:
        super().__init__(
            f"{task_type!r}: {faults} of {questions} questions ended in an infrastructure fault "
            f"({faults / questions:.1%}), more than {limit:.1%}; check the inference infrastructure",
            metadata={
                "task_type": task_type,
                "faults": str(faults),
                "questions": str(questions),
                "limit": repr(limit),
            },
        )


class AllUnitsExcluded(GateError):
    """Not one unit of a type could be counted."""

    def __init__(self, task_type: str, excluded: int) -> None:
        super().__init__(
            f"{task_type!r}: all {excluded} units ended in an infrastructure fault; check the inference infrastructure",
            metadata={"task_type": task_type, "excluded": str(excluded)},
        )


class NeighbourFailed(GateError):
    """A call to another service failed; `status` is the name of its status code."""

    def __init__(self, message: str, *, status: str, metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(message, metadata={"status": status, **(metadata or {})})
        self.status = status


class MissingInStore(NeighbourFailed):
    """The store does not have what the request names."""


class ArmFailed(NeighbourFailed):
    """One arm of one unit could not be run; the same round may succeed later."""

    def __init__(self, task_type: str, unit_id: str, arm: str, cause: str, status: str) -> None:
        super().__init__(
            f"{task_type!r}, unit {unit_id!r}, arm {arm}: {cause}",
            status=status,
            metadata={"task_type": task_type, "unit_id": unit_id, "arm": arm},
        )


class ArmRefused(ArmFailed):
    """One arm of one unit was refused; the same round would fail again."""


TRANSIENT_STATUSES = frozenset({"UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED", "DEADLINE_EXCEEDED", "CANCELLED"})


def arm_failure(task_type: str, unit_id: str, arm: str, cause: Exception) -> ArmFailed:
    """The failure of an arm that `cause` amounts to."""
    status = cause.status if isinstance(cause, NeighbourFailed) else "UNKNOWN"
    words = str(cause) if isinstance(cause, NeighbourFailed) else repr(cause)
    kind = ArmFailed if status in TRANSIENT_STATUSES else ArmRefused
    return kind(task_type, unit_id, arm, words, status)
