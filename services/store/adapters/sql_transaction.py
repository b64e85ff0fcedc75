"""Reading and writing rows inside one SQLAlchemy transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    Table,
    delete,
    func,
    select,
    tuple_,
)

from services.store.adapters import database_dialect
from services.store.adapters.tables import Base
from services.store.domain.tables import KEYS
from services.store.use_cases.ports import Query, Row

_FETCH_ROWS = 200


def table_named(name: str) -> Table:
    """Return a table of the workspace schema; raises KeyError for another name."""
    return Base.metadata.tables[name]


class SqlTransaction:
    """The port LedgerTransaction on one connection whose transaction somebody else begins and ends."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._dialect = connection.dialect.name

    def get(self, table: str, key: Mapping[str, object]) -> Row | None:
        """Return the row with this whole key, or None."""
        rows = self.find(Query(table, equal=key))
        return rows[0] if rows else None

    def find(self, query: Query) -> list[Row]:
        """Return all rows of the query, in its order."""
        return [dict(row) for row in self._connection.execute(self._select(query)).mappings()]

    def page(self, query: Query, limit: int, max_chars: int) -> tuple[list[Row], bool]:
        """Return the first rows, and whether more follow."""
        statement = self._select(query).limit(limit + 1).execution_options(yield_per=_FETCH_ROWS)
        rows: list[Row] = []
        chars = 0
        result = self._connection.execute(statement)
        try:
            for row in result.mappings():
                if len(rows) == limit or (rows and chars >= max_chars):
                    return rows, True
                rows.append(dict(row))
                chars += _text_length(row)
        finally:
            result.close()
        return rows, False

    def count(self, query: Query) -> int:
        """Return the number of rows of the query."""
        table = table_named(query.table)
        statement = select(func.count()).select_from(table).where(*self._conditions(table, query))
        return int(self._connection.execute(statement).scalar_one())

    def sums(self, query: Query, by: Sequence[str], columns: Sequence[str]) -> list[Row]:
        """Return counts and sums for each combination of `by`."""
        table = table_named(query.table)
        groups = [table.c[name] for name in by]
        figures: list[ColumnElement[Any]] = [func.count().label("row_count")]
        for name in columns:
            figures.append(func.coalesce(func.sum(table.c[name]), 0).label(name))
            figures.append((func.count() - func.count(table.c[name])).label(f"{name}_missing"))
        statement = select(*groups, *figures).where(*self._conditions(table, query)).group_by(*groups).order_by(*groups)
        return [
            {name: value if name in by else int(value) for name, value in row.items()}
            for row in self._connection.execute(statement).mappings()
        ]

    def upsert(self, table: str, rows: Sequence[Row]) -> None:
        """Write rows; one with an existing key replaces that row as a whole."""
        if rows:
            database_dialect.upsert(self._connection, table_named(table), rows)

    def insert_missing(self, table: str, rows: Sequence[Row]) -> int:
        """Write the rows whose key does not exist yet; returns how many there were."""
        if not rows:
            return 0
        statement = database_dialect.insert_missing(self._dialect, table_named(table))
        return int(self._connection.execute(statement.execution_options(preserve_rowcount=True), rows).rowcount)

    def delete(self, query: Query) -> int:
        """Delete the rows of the query; returns how many there were."""
        table = table_named(query.table)
        return int(self._connection.execute(delete(table).where(*self._conditions(table, query))).rowcount)

    def delete_keys(self, table: str, columns: tuple[str, ...], keys: Sequence[Row]) -> None:
        """Delete, for each of the keys, all rows that share these columns with it."""
        database_dialect.delete_keys(self._connection, table_named(table), columns, keys)

    def _select(self, query: Query) -> Select[Any]:
        table = table_named(query.table)
        names = query.order or KEYS[query.table]
        order = [table.c[name] for name in names]
        shown: list[Column[Any]] = [table.c[name] for name in query.columns] or list(table.columns)
        statement = select(*shown).where(*self._conditions(table, query)).order_by(*order)
        if query.distinct:
            statement = statement.distinct()
        if query.after is not None:
            # Columns that are fixed anyway stay out of the comparison, or SQLite would scan from their beginning.
            rest = [
                (table.c[name], value)
                for name, value in zip(names, query.after, strict=True)
                if name not in query.equal
            ]
            statement = statement.where(tuple_(*(column for column, _ in rest)) > tuple_(*(value for _, value in rest)))
        return statement

    def _conditions(self, table: Table, query: Query) -> list[ColumnElement[bool]]:
        return [
            *(table.c[name] == value for name, value in query.equal.items()),
            *(table.c[name].in_(values) for name, values in query.one_of.items()),
            *(
                database_dialect.starts_with(self._dialect, table.c[name], prefix)
                for name, prefix in query.starting_with.items()
            ),
            *(database_dialect.not_containing(table.c[name], part) for name, part in query.not_containing.items()),
        ]


def _text_length(row: RowMapping) -> int:
    return sum(len(value) for value in row.values() if isinstance(value, str))
