"""Writes that share their statements with others of their kind (group commit)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, cast

from sqlalchemy import Connection

from services.store.adapters.commit_group import Append
from services.store.adapters.sql_transaction import SqlTransaction
from services.store.domain.tables import KEYS
from services.store.use_cases.ports import Row

_ANSWER = ("run_id", "question_id")


@dataclass(frozen=True, slots=True)
class AnswerAppend:
    """Predictions and traces; the traces of a (run, question) among the predictions replace all its older ones."""

    predictions: Sequence[Row]
    traces: Sequence[Row]

    def keys(self) -> set[Any]:
        """Return the (run, question) pairs it touches."""
        return {(row["run_id"], row["question_id"]) for row in chain(self.predictions, self.traces)}

    def merged(self, others: Sequence[Append]) -> Append:
        """Return one append for all."""
        appends = [self, *(cast(AnswerAppend, other) for other in others)]
        return AnswerAppend(
            [row for each in appends for row in each.predictions], [row for each in appends for row in each.traces]
        )

    def execute(self, connection: Connection) -> None:
        """Write the rows."""
        transaction = SqlTransaction(connection)
        transaction.upsert("predictions", self.predictions)
        transaction.delete_keys("traces", _ANSWER, self.predictions)
        transaction.upsert("traces", self.traces)


@dataclass(frozen=True, slots=True)
class TableAppend:
    """Rows of one table."""

    table: str
    rows: Sequence[Row]

    def keys(self) -> set[Any]:
        """Return the table and the natural keys it touches."""
        return {(self.table, *(row[column] for column in KEYS[self.table])) for row in self.rows}

    def merged(self, others: Sequence[Append]) -> Append:
        """Return one append for all; several tables stay several."""
        return _TableAppends([self, *(cast(TableAppend, other) for other in others)])

    def execute(self, connection: Connection) -> None:
        """Write the rows."""
        SqlTransaction(connection).upsert(self.table, self.rows)


@dataclass(frozen=True, slots=True)
class _TableAppends:
    appends: Sequence[TableAppend]

    def keys(self) -> set[Any]:
        return set().union(*(each.keys() for each in self.appends))

    def merged(self, others: Sequence[Append]) -> Append:
        return _TableAppends(
            [*self.appends, *(each for other in others for each in cast(_TableAppends, other).appends)]
        )

    def execute(self, connection: Connection) -> None:
        for table in dict.fromkeys(each.table for each in self.appends):
            rows = [row for each in self.appends if each.table == table for row in each.rows]
            SqlTransaction(connection).upsert(table, rows)
