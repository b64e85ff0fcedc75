"""One transaction for a group of writes, each of which succeeds or fails alone (STO-5).

Neighbouring appends that touch different rows become one multi-row statement. A group that is one such batch, the usual
case, needs no savepoint; any other gives each batch its own, and a batch that fails is repeated write by write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, cast

from sqlalchemy import Connection

Outcome: TypeAlias = tuple[object, Exception | None]
"""What a write returned, or why it failed."""


class Append(Protocol):
    """A write that can share its statements with others of its kind."""

    def keys(self) -> set[Any]:
        """Return what it touches; two appends with a common key are never merged."""

    def merged(self, others: Sequence[Append]) -> Append:
        """Return one append that does what this one and the others, of the same class, do."""

    def execute(self, connection: Connection) -> None:
        """Do it."""


Action: TypeAlias = Callable[[Connection], object]
Work: TypeAlias = Append | Action


def commit_group(connection: Connection, group: Sequence[Work]) -> list[Outcome]:
    """Commit writes in their order, in one transaction; returns the outcome of each, once all is on the disk."""
    batches = _batches(group)
    outcomes = _commit_at_once(connection, batches[0]) if len(batches) == 1 else None
    if outcomes is not None:
        return outcomes
    try:
        with connection.begin():
            return [outcome for batch in batches for outcome in _execute(connection, batch)]
    except Exception as error:
        return [(None, error)] * len(group)


def _commit_at_once(connection: Connection, batch: list[Work]) -> list[Outcome] | None:
    """Commit a group that is one batch without savepoints; None if it has to be taken apart."""
    try:
        with connection.begin():
            result = _merged(batch)(connection)
    except Exception as error:
        return [(None, error)] if len(batch) == 1 else None
    return [(result, None)] * len(batch)


def _execute(connection: Connection, batch: list[Work]) -> list[Outcome]:
    if len(batch) > 1:
        merged = _attempt(connection, _merged(batch))
        if merged[1] is None:
            return [merged] * len(batch)
    return [_attempt(connection, _merged([work])) for work in batch]


def _merged(batch: list[Work]) -> Action:
    """Return what does the work of a whole batch: its one action, or its appends as one."""
    first = batch[0]
    if callable(first):
        return first
    return first.merged([cast(Append, work) for work in batch[1:]]).execute if len(batch) > 1 else first.execute


def _attempt(connection: Connection, action: Action) -> Outcome:
    savepoint = connection.begin_nested()
    try:
        result = action(connection)
    except Exception as error:
        savepoint.rollback()
        return None, error
    savepoint.commit()
    return result, None


def _batches(group: Sequence[Work]) -> list[list[Work]]:
    """Split a group into runs of appends of one class that touch different rows; an action stands alone."""
    batches: list[list[Work]] = []
    touched: set[Any] = set()
    for work in group:
        keys = set() if callable(work) else work.keys()
        joins = batches and not callable(work) and type(batches[-1][0]) is type(work)
        if joins and touched.isdisjoint(keys):
            batches[-1].append(work)
            touched |= keys
        else:
            batches.append([work])
            touched = keys
    return batches
