"""Everything that differs between SQLite and PostgreSQL; no other file of the store knows which one it talks to."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import (
    JSON,
    URL,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Insert,
    Table,
    and_,
    create_engine,
    delete,
    event,
    func,
    make_url,
    text,
    tuple_,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.pool import QueuePool

from services.store.use_cases.ports import Row

_BUSY_SECONDS = 30
_MAX_BOUND_VALUES = 16_000  # SQLite takes 32,766 since version 3.32
_MAX_ALTERNATIVES = 128  # an expression may be 1,000 deep
_HIGHEST_CHARACTER = "\U0010ffff"


def sqlite_url(path: Path) -> URL:
    """Return the URL of a database file."""
    return URL.create("sqlite", database=str(path))


def schema_url(server: str, schema: str) -> URL:
    """Return the URL of one schema of a PostgreSQL server."""
    return make_url(server).update_query_dict({"options": f'-csearch_path="{schema}"'})


def writing_engine(url: URL) -> Engine:
    """Return the engine of the one writer: durable at commit, real transactions with savepoints."""
    engine = _engine(url, pool_size=1)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite_writer)
        event.listen(engine, "begin", _begin_immediately)
    return engine


def reading_engine(url: URL, readers: int) -> Engine:
    """Return the engine of the readers, on which the database itself refuses every change."""
    engine = _engine(url, pool_size=readers)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite_reader)
        event.listen(engine, "begin", _begin)
    else:
        event.listen(engine, "begin", _begin_read_only)
    return engine


def upsert(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Write rows; one whose key exists replaces that row as a whole."""
    if connection.dialect.name != "sqlite":
        connection.execute(_upsert(table), rows)
        return
    # Python's sqlite3 hands over the interpreter lock once for each row of `executemany`, and waits for it each time
    # while the event loop is busy. A statement of many rows does it once.
    bound = _sqlite_binder(table)
    for chunk in _chunks(rows, len(table.columns)):
        statement = _sqlite_upsert(table, len(chunk))
        connection.exec_driver_sql(statement, tuple(chain.from_iterable(map(bound, chunk))))


def delete_keys(connection: Connection, table: Table, columns: tuple[str, ...], keys: Sequence[Row]) -> None:
    """Delete, for each of the keys, all rows that share these columns with it."""
    if connection.dialect.name != "sqlite":
        target = tuple_(*(table.c[name] for name in columns))
        connection.execute(delete(table).where(target.in_([tuple(key[name] for name in columns) for key in keys])))
        return
    # SQLite looks each alternative up in the index, but would scan the table for a list of row values.
    for chunk in _chunks(keys, _MAX_BOUND_VALUES // _MAX_ALTERNATIVES):
        values = tuple(key[name] for key in chunk for name in columns)
        connection.exec_driver_sql(_sqlite_delete(table, columns, len(chunk)), values)


def insert_missing(dialect: str, table: Table) -> Insert:
    """Return the insert that leaves an existing row as it is."""
    return _insert(dialect, table).on_conflict_do_nothing()


def starts_with(dialect: str, column: Column[Any], prefix: str) -> ColumnElement[bool]:
    """Return the condition that a text begins with this literal prefix, exactly (LIKE has wildcards and folds case)."""
    exact = func.substr(column, 1, len(prefix)) == prefix
    if dialect != "sqlite":
        return exact
    # SQLite compares bytes, so a range finds the rows through the index.
    return and_(column >= prefix, column < prefix + _HIGHEST_CHARACTER, exact)


def not_containing(column: Column[Any], part: str) -> ColumnElement[bool]:
    """Return the condition that a text does not hold this literal part, exactly."""
    return func.replace(column, part, "") == column


def copy_online(engine: Engine, target: Path) -> None:
    """Copy a SQLite database that is in use into a new file, consistently."""
    with engine.connect() as connection:
        source = connection.connection.driver_connection
        if not isinstance(source, sqlite3.Connection):
            raise TypeError("not a SQLite connection")
        copy = sqlite3.connect(target)
        try:
            source.backup(copy)
        finally:
            copy.close()


def integrity_fault(engine: Engine) -> str:
    """Return what is wrong with a SQLite file, or an empty text."""
    with engine.connect() as connection:
        found = str(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one())
    return "" if found == "ok" else found


def create_schema(server: str, schema: str) -> None:
    """Make an empty PostgreSQL schema, dropping what an unfinished workspace left under that name."""
    _administer(server, "DROP SCHEMA IF EXISTS {0} CASCADE", "CREATE SCHEMA {0}", names=(schema,))


def replace_schema(server: str, new: str, old: str) -> None:
    """Give a schema another's name and place, in one transaction."""
    _administer(server, "DROP SCHEMA IF EXISTS {1} CASCADE", "ALTER SCHEMA {0} RENAME TO {1}", names=(new, old))


def _administer(server: str, *statements: str, names: tuple[str, ...]) -> None:
    engine = create_engine(server)
    quoted = [engine.dialect.identifier_preparer.quote(name) for name in names]
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement.format(*quoted)))
    engine.dispose()


def _engine(url: URL, pool_size: int) -> Engine:
    sqlite_arguments = {"check_same_thread": False, "timeout": _BUSY_SECONDS}
    return create_engine(
        url,
        connect_args=sqlite_arguments if url.get_backend_name() == "sqlite" else {},
        poolclass=QueuePool,
        pool_size=pool_size,
        max_overflow=0,
        json_serializer=lambda value: orjson.dumps(value).decode(),
        json_deserializer=orjson.loads,
    )


def _insert(dialect: str, table: Table) -> sqlite.Insert | postgresql.Insert:
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


@cache
def _upsert(table: Table) -> Insert:
    insert = postgresql.insert(table)
    values = {column.name: insert.excluded[column.name] for column in table.columns if not column.primary_key}
    return insert.on_conflict_do_update(index_elements=[column.name for column in table.primary_key], set_=values)


@cache
def _sqlite_upsert(table: Table, row_count: int) -> str:
    names = table.columns.keys()
    places = ", ".join([f"({', '.join('?' * len(names))})"] * row_count)
    keys = ", ".join(_quoted(column.name) for column in table.primary_key)
    changes = ", ".join(
        f"{_quoted(column.name)} = excluded.{_quoted(column.name)}"
        for column in table.columns
        if not column.primary_key
    )
    columns = ", ".join(_quoted(name) for name in names)
    insert = f"INSERT INTO {_quoted(table.name)} ({columns}) VALUES {places}"  # noqa: S608 - names of our own tables
    return f"{insert} ON CONFLICT ({keys}) DO UPDATE SET {changes}"


@cache
def _sqlite_delete(table: Table, columns: tuple[str, ...], key_count: int) -> str:
    one = " AND ".join(f"{_quoted(name)} = ?" for name in columns)
    return f"DELETE FROM {_quoted(table.name)} WHERE {' OR '.join([f'({one})'] * key_count)}"  # noqa: S608 - our names


def _quoted(name: str) -> str:
    return f'"{name}"'


@cache
def _sqlite_binder(table: Table) -> Callable[[Row], Sequence[object]]:
    """Return what gives a row's values in the order of the table's columns, lists and maps as JSON."""
    values = itemgetter(*table.columns.keys())
    json_places = [place for place, column in enumerate(table.columns) if isinstance(column.type, JSON)]
    if not json_places:
        return values

    def with_json(row: Row) -> list[object]:
        bound = list(values(row))
        for place in json_places:
            if bound[place] is not None:
                bound[place] = orjson.dumps(bound[place]).decode()
        return bound

    return with_json


def _chunks(rows: Sequence[Row], values_each: int) -> Iterator[Sequence[Row]]:
    """Split rows into powers of two, so that few statements are needed, each within the limit of bound values."""
    start, size = 0, 1 << ((_MAX_BOUND_VALUES // values_each).bit_length() - 1)
    while start < len(rows):
        while size > len(rows) - start:
            size >>= 1
        yield rows[start : start + size]
        start += size


def _prepare_sqlite_writer(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # we begin transactions ourselves, or savepoints would not nest
    _pragmas(connection, "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY")


def _prepare_sqlite_reader(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None
    _pragmas(connection, "query_only=ON", "temp_store=MEMORY")


def _pragmas(connection: sqlite3.Connection, *pragmas: str) -> None:
    for pragma in pragmas:
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_immediately(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _begin_read_only(connection: Connection) -> None:
    connection.exec_driver_sql("SET TRANSACTION READ ONLY")
