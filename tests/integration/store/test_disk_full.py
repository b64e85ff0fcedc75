"""A disk without room is named, and costs nothing that was acknowledged (STO-14)."""

from pathlib import Path

import pytest
from sqlalchemy import text

from services.store.adapters.database_dialect import reading_engine, sqlite_url, writing_engine
from services.store.adapters.sql_ledger import SqlLedger
from services.store.adapters.tables import Base
from services.store.domain.errors import StorageFailed
from services.store.use_cases.ports import Query, Row


def _row(fingerprint: str, size: int) -> Row:
    texts = dict.fromkeys(("run_id", "question_id", "tier", "category", "cause", "evidence_json"), "")
    return {**texts, "fingerprint": fingerprint, "degraded": False, "why": "x" * size}


async def test_a_full_disk_is_named_with_what_to_do_and_takes_rows_again_once_there_is_room(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "small.db")
    writing = writing_engine(url)
    with writing.begin() as connection:
        Base.metadata.create_all(connection)
        pages = connection.execute(text("PRAGMA page_count")).scalar_one()
        connection.execute(text(f"PRAGMA max_page_count = {pages + 8}"))
    ledger = SqlLedger("small", writing, reading_engine(url, 1), readers=1)
    await ledger.append("baseline_diagnosis", [_row("a", 10)])
    with pytest.raises(StorageFailed, match=r"the disk that holds the database is full .*; make room there"):
        await ledger.append("baseline_diagnosis", [_row("b", 200_000)])
    assert await ledger.read(lambda reader: reader.count(Query("baseline_diagnosis"))) == 1
    await ledger.append("baseline_diagnosis", [_row("c", 10)])
    assert await ledger.read(lambda reader: reader.count(Query("baseline_diagnosis"))) == 2
    await ledger.close()
