"""Schema versions (STO-5): a database of any earlier version is brought to the newest with its rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, text
from videotree.store.v1 import run_service_pb2

from services.store.adapters import database_dialect, migrate, schema
from services.store.adapters.tables import Base
from services.store.domain.errors import PreconditionFailed
from tests.builders.store_requests import WORKSPACE, append, listed, make_workspace, manifest_of, prediction
from tests.fakes.store_client import disk_store_parts, serving

_FIRST = "0001"


def test_the_newest_schema_is_that_of_the_models(tmp_path: Path) -> None:
    engine = database_dialect.writing_engine(database_dialect.sqlite_url(tmp_path / "a.db"))
    schema.upgrade(engine)
    with engine.begin() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_the_newest_schema_is_what_the_migrations_arrive_at() -> None:
    assert migrate.known_revisions()[0] == schema.NEWEST


async def test_a_workspace_made_by_the_first_version_is_upgraded_and_works_on(tmp_path: Path) -> None:
    async with serving(await disk_store_parts(tmp_path)) as client:
        await make_workspace(client)
        manifest = await manifest_of(client)
    path = tmp_path / "workspaces" / WORKSPACE / "harness.db"
    path.unlink()
    old = database_dialect.writing_engine(database_dialect.sqlite_url(path))
    schema.upgrade(old, _FIRST)
    _write_first_rows(old, manifest.name)
    with old.begin() as connection:
        assert schema.current_revision(connection) == _FIRST
        assert "run_id" not in {row[1] for row in connection.exec_driver_sql("PRAGMA table_info(llm_calls)")}
    old.dispose()
    async with serving(await disk_store_parts(tmp_path)) as client:
        assert (await manifest_of(client)).current.skills == "v1"
        assert await listed(client) == [("r", "q0")]
        await append(client, prediction("r", "q1"))
        assert await listed(client) == [("r", "q0"), ("r", "q1")]
        request = run_service_pb2.SummarizeLlmCallsRequest(workspace=WORKSPACE)
        (summary,) = (await client.runs.SummarizeLlmCalls(request)).summaries
        assert (summary.call_count, summary.prompt_tokens) == (1, 7)


def _write_first_rows(engine: Engine, name: str) -> None:
    """Rows as the first version wrote them, in its own words."""
    document = (
        f'{{"name": "{name}", "created_time": "2026-01-01T00:00:00.000000Z", "best": {{}}, "history": [], "seed": "", '
        '"current": {"videos": "library", "questions": "sample", "skills": "v1", "prompts": "v1"}, '
        '"baseline_run_id": "", "pools_sha256": ""}'
    )
    statements = [
        ("INSERT INTO manifest VALUES (:a, :b)", {"a": name, "b": document}),
        (
            "INSERT INTO predictions VALUES ('r', 'q0', 'v', 'T', 'A', 'A', 1, '[]', '', 1, 0, 0, 'finished', '[]', "
            "1, 0, '', 'q0')",
            {},
        ),
        (
            "INSERT INTO llm_calls VALUES ('c', 'agent', 'e', 'OK', 1, 'miss', 7, 1, NULL, NULL, 0.5, '', NULL)",
            {},
        ),
    ]
    with engine.begin() as connection:
        for statement, values in statements:
            connection.execute(text(statement), values)


def test_a_database_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    engine = database_dialect.writing_engine(database_dialect.sqlite_url(tmp_path / "a.db"))
    schema.upgrade(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(PreconditionFailed, match="newer program"):
        schema.upgrade(engine)
    engine.dispose()
