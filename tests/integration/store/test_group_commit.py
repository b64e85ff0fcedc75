"""The group-committing writer on a real database (STO-5)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from services.store.adapters import database_dialect, schema
from services.store.adapters.appends import AnswerAppend
from services.store.adapters.group_commit import GroupCommitWriter
from services.store.adapters.sql_transaction import SqlTransaction
from services.store.domain.errors import StorageFailed
from services.store.rpc.row_codec import to_row
from services.store.use_cases.ports import Row
from tests.builders.store_requests import prediction, trace


class Database:
    """A migrated database with its writer and a count of its commits."""

    def __init__(self, path: Path) -> None:
        self.path = path
        engine = database_dialect.writing_engine(database_dialect.sqlite_url(path))
        schema.upgrade(engine)
        self.commits = 0
        event.listen(engine, "commit", self._count)
        self.writer = GroupCommitWriter(engine, "test")

    def _count(self, _: object) -> None:
        self.commits += 1

    def rows(self, statement: str) -> list[Any]:
        """What another process would read now."""
        connection = sqlite3.connect(self.path)
        try:
            return connection.execute(statement).fetchall()
        finally:
            connection.close()


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    made = Database(tmp_path / "harness.db")
    yield made
    await made.writer.close()


def _answer(question_id: str, run_id: str = "r", steps: int = 0, **fields: Any) -> AnswerAppend:
    rows: list[Row] = [to_row(prediction(run_id, question_id, **fields))]
    return AnswerAppend(rows, [to_row(trace(run_id, question_id, step)) for step in range(steps)])


async def test_sto_5_concurrent_appends_share_commits(database: Database) -> None:
    await asyncio.gather(*(database.writer.append(_answer(f"q{number}")) for number in range(300)))
    assert database.rows("select count(*) from predictions") == [(300,)]
    assert database.commits < 30


async def test_sto_5_a_call_is_answered_only_after_its_commit(database: Database) -> None:
    async def write(number: int) -> None:
        await database.writer.append(_answer(f"q{number}"))
        assert database.rows(f"select count(*) from predictions where question_id = 'q{number}'") == [(1,)]

    await asyncio.gather(*(write(number) for number in range(50)))


async def test_sto_5_one_failing_append_fails_alone(database: Database) -> None:
    bad = _answer("bad")
    bad.predictions[0]["video_id"] = None  # type: ignore[index]
    appends = [_answer(f"q{number}", steps=2) for number in range(20)]
    appends.insert(10, bad)
    results = await asyncio.gather(*(database.writer.append(each) for each in appends), return_exceptions=True)
    assert [index for index, result in enumerate(results) if result is not None] == [10]
    assert "NOT NULL" in str(results[10])
    assert database.rows("select count(*), sum(question_id = 'bad') from predictions") == [(20, 0)]
    assert database.rows("select count(*) from traces") == [(40,)]


async def test_sto_5_a_failing_action_undoes_its_own_rows_and_no_others(database: Database) -> None:
    def half_done(connection: Any) -> None:
        SqlTransaction(connection).upsert("predictions", _answer("half").predictions)
        raise ValueError("changed my mind")

    results = await asyncio.gather(
        database.writer.append(_answer("q0")),
        database.writer.run(half_done),
        database.writer.append(_answer("q1")),
        return_exceptions=True,
    )
    assert isinstance(results[1], ValueError)
    assert database.rows("select question_id from predictions order by 1") == [("q0",), ("q1",)]


async def test_appends_to_the_same_row_keep_their_order(database: Database) -> None:
    async def burst() -> None:
        await asyncio.gather(
            *(database.writer.append(_answer("q0", reasoning=str(number), steps=5 - number)) for number in range(5))
        )

    await burst()
    assert database.rows("select reasoning from predictions") == [("4",)]
    assert database.rows("select step from traces") == [(0,)]


async def test_a_caller_that_goes_away_does_not_stop_the_others(database: Database) -> None:
    tasks = [asyncio.create_task(database.writer.append(_answer(f"q{number}"))) for number in range(20)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(result is None for result in results) >= 19
    await database.writer.append(_answer("last"))
    assert database.rows("select count(*) from predictions where question_id = 'last'") == [(1,)]


async def test_closing_finishes_what_is_queued_and_refuses_the_rest(database: Database) -> None:
    tasks = [asyncio.create_task(database.writer.append(_answer(f"q{number}"))) for number in range(50)]
    await asyncio.sleep(0)
    await database.writer.close()
    await asyncio.gather(*tasks)
    assert database.rows("select count(*) from predictions") == [(50,)]
    with pytest.raises(StorageFailed):
        await database.writer.append(_answer("late"))


async def test_sto_5_the_writers_pragmas_are_the_durable_ones(database: Database) -> None:
    def pragmas(connection: Any) -> list[Any]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in names]

    assert await database.writer.run(pragmas) == ["wal", 2, 1]
