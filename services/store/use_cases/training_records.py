"""What trainings keep beside the steps: checkpoints, evaluations, estimates, baseline results, diagnoses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.store.domain import page_tokens
from services.store.domain.errors import InvalidRequest, NotFound
from services.store.domain.fingerprints import require_same
from services.store.domain.names import row_key, run_name
from services.store.domain.rows import checked_json_object, checked_row, checked_rows
from services.store.domain.tables import KEYS
from services.store.use_cases.paging import Page, PageRequest, row_page
from services.store.use_cases.ports import Clock, LedgerFolders, LedgerReader, LedgerTransaction, Query, Row

INTENDED = "intended"
MAX_IDS_A_CALL = 10_000
DIAGNOSIS_TABLES = ("question_metrics", "span_evaluations", "diagnosis_traces")


@dataclass(frozen=True, slots=True)
class DiagnosisPage:
    """The diagnosis rows of some questions by table, and the token of the next page."""

    rows: Mapping[str, Sequence[Row]]
    next_token: str


class TrainingRecords:
    """The records of all workspaces."""

    def __init__(self, workspaces: LedgerFolders, clock: Clock) -> None:
        self._workspaces = workspaces
        self._clock = clock

    async def save_checkpoint(self, workspace: str, checkpoint: Row) -> Row:
        """Write a run's checkpoint; returns it as stored."""
        row = {**checkpoint, "committed_time": self._clock()}
        checked_row("checkpoints", row, "checkpoint")
        if row["trainer_state_json"]:
            checked_json_object(row["trainer_state_json"], "checkpoint.trainer_state_json")
        folder = await self._workspaces.open(workspace)
        await folder.ledger.append("checkpoints", [row])
        return row

    async def load_checkpoint(self, workspace: str, run_id: str, fingerprints: Mapping[str, str] | None) -> Row:
        """Return a run's checkpoint; raises NotFound, FingerprintMismatch naming each key that differs."""
        folder = await self._workspaces.open(workspace)
        key = {"run_id": run_name(run_id, "run_id")}
        row = await folder.ledger.read(lambda reader: reader.get("checkpoints", key))
        if row is None:
            raise NotFound("checkpoint of run", run_id, field="run_id")
        if fingerprints is not None:
            require_same(row["fingerprints"], fingerprints)
        return row

    async def run_page(self, workspace: str, table: str, run_id: str, request: PageRequest) -> Page[Row]:
        """Return a run's rows of one table in the order of its key."""
        folder = await self._workspaces.open(workspace)
        return await row_page(folder.ledger, Query(table, equal={"run_id": run_name(run_id, "run_id")}), request)

    async def put_holdout_eval(self, workspace: str, row: Row) -> Row:
        """Write an intent or a result; returns the row as stored: an intent never replaces a result."""
        checked_row("holdout_eval", row, "holdout_eval")
        folder = await self._workspaces.open(workspace)
        return (await folder.ledger.write(lambda transaction: put_holdout_evals(transaction, [row])))[0]

    async def put_baseline_results(self, workspace: str, results: Sequence[Row]) -> int:
        """Write baseline results; an existing key keeps its first value. Returns how many were new."""
        rows = [{**row, "created_time": self._clock()} for row in results]
        checked_rows("baseline_cache", rows, "results")
        folder = await self._workspaces.open(workspace)
        return await folder.ledger.write(lambda transaction: transaction.insert_missing("baseline_cache", rows))

    async def baseline_results(self, workspace: str, key: Mapping[str, str], unit_ids: Sequence[str]) -> list[Row]:
        """Return the cached results among these units (all when none is named), by unit; a missing one is left out."""
        if len(unit_ids) > MAX_IDS_A_CALL:
            raise InvalidRequest(f"at most {MAX_IDS_A_CALL} units a call", field="unit_ids")
        for name, value in key.items():
            row_key(value, name)
        folder = await self._workspaces.open(workspace)
        query = Query("baseline_cache", equal=key, one_of={"unit_id": list(unit_ids)} if unit_ids else {})
        return await folder.ledger.read(lambda reader: reader.find(query))

    async def put_diagnosis_details(self, workspace: str, rows: Mapping[str, Sequence[Row]]) -> int:
        """Write diagnosis rows by table; the same keys again replace the rows. Returns how many were written."""
        for table, each in rows.items():
            checked_rows(table, each, table)
        folder = await self._workspaces.open(workspace)

        def write(transaction: LedgerTransaction) -> int:
            for table, each in rows.items():
                transaction.upsert(table, each)
            return sum(len(each) for each in rows.values())

        return await folder.ledger.write(write)

    async def diagnosis_page(self, workspace: str, run_id: str, request: PageRequest) -> DiagnosisPage:
        """Return the diagnosis rows of a run, whole questions at a time, by question id."""
        folder = await self._workspaces.open(workspace)
        run_name(run_id, "run_id")
        mark = page_tokens.query_mark("diagnosis", {"run_id": run_id})
        after = page_tokens.decode(mark, request.token, (str,))
        limit = request.limit

        def read(reader: LedgerReader) -> tuple[list[str], dict[str, list[Row]]]:
            questions = _diagnosed(reader, run_id, after, limit + 1)
            chosen = {"question_id": questions[:limit]}
            return questions, {
                table: reader.find(Query(table, equal={"run_id": run_id}, one_of=chosen)) for table in DIAGNOSIS_TABLES
            }

        questions, rows = await folder.ledger.read(read)
        more = len(questions) > limit
        return DiagnosisPage(rows, page_tokens.encode(mark, [questions[limit - 1]]) if more else "")

    async def put_baseline_diagnoses(self, workspace: str, diagnoses: Sequence[Row]) -> int:
        """Write offline diagnoses; an existing fingerprint is replaced. Returns how many were written."""
        checked_rows("baseline_diagnosis", diagnoses, "diagnoses")
        folder = await self._workspaces.open(workspace)
        await folder.ledger.append("baseline_diagnosis", diagnoses)
        return len(diagnoses)

    async def baseline_diagnosis_page(self, workspace: str, run_id: str, request: PageRequest) -> Page[Row]:
        """Return offline diagnoses by fingerprint, of one run or (empty) of all."""
        folder = await self._workspaces.open(workspace)
        query = Query("baseline_diagnosis", equal={"run_id": run_name(run_id, "run_id")} if run_id else {})
        return await row_page(folder.ledger, query, request)


def put_holdout_evals(transaction: LedgerTransaction, rows: Sequence[Row]) -> list[Row]:
    """Write held-out evaluations and return them as stored; an intent never replaces a result."""
    stored = []
    for row in rows:
        known = transaction.get("holdout_eval", {name: row[name] for name in KEYS["holdout_eval"]})
        if known is not None and known["how"] != INTENDED and row["how"] == INTENDED:
            stored.append(known)
        else:
            transaction.upsert("holdout_eval", [row])
            stored.append(row)
    return stored


def _diagnosed(
    reader: LedgerReader, run_id: str, after: tuple[page_tokens.KeyPart, ...] | None, limit: int
) -> list[str]:
    """Return up to `limit` question ids that have a row in any of the diagnosis tables, in ascending order."""
    found: set[str] = set()
    for table in DIAGNOSIS_TABLES:
        query = Query(
            table,
            equal={"run_id": run_id},
            columns=("question_id",),
            order=("question_id",),
            after=after,
            distinct=True,
        )
        rows, _ = reader.page(query, limit, limit * 1024)
        found.update(row["question_id"] for row in rows)
    return sorted(found)[:limit]
