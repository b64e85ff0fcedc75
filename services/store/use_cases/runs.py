"""Runs and what they produced: predictions, traces and model calls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from services.store.domain.errors import InvalidRequest, NotFound
from services.store.domain.names import run_name
from services.store.domain.rows import checked_json_object, checked_row, checked_rows
from services.store.domain.step_keys import GATE_MARK
from services.store.use_cases.paging import Page, PageRequest, row_chunks, row_page
from services.store.use_cases.ports import Clock, Ledger, LedgerFolders, LedgerTransaction, Query, Row

MAX_IDS_A_CALL = 10_000
STREAM_ROWS = 500
RUN_KINDS: Final = ("train", "baseline", "rollout", "gate", "evaluation")
END_STATUSES: Final = ("finished", "failed", "stopped")
_RUNNING = "running"
_LEFT_OUT_WHEN_BRIEF = frozenset({"steps_json", "reasoning"})


@dataclass(frozen=True, slots=True)
class PredictionFilter:
    """Which predictions: those of one run, or of every run that is no gate arm unless those are asked for too."""

    run_id: str
    question_ids: Sequence[str]
    include_gate_runs: bool
    brief: bool


class Runs:
    """The runs of all workspaces; model calls without a workspace go to the store's own log."""

    def __init__(
        self, workspaces: LedgerFolders, own_log: Ledger, clock: Clock, prediction_columns: Sequence[str]
    ) -> None:
        self._workspaces = workspaces
        self._own_log = own_log
        self._clock = clock
        self._brief_columns = tuple(name for name in prediction_columns if name not in _LEFT_OUT_WHEN_BRIEF)

    async def register(self, workspace: str, run: Row) -> tuple[Row, bool]:
        """Return the run's row and whether it is new; a known run only goes back to `running`."""
        checked_row("runs", run, "run")
        if run["run_kind"] not in RUN_KINDS:
            raise InvalidRequest(
                f"run_kind {run['run_kind'][:40]!r} is not one of {', '.join(RUN_KINDS)}", field="run.run_kind"
            )
        if run["config_json"]:
            checked_json_object(run["config_json"], "run.config_json")
        folder = await self._workspaces.open(workspace)
        fresh = {**run, "started_time": self._clock(), "finished_time": None, "status": _RUNNING, "status_detail": ""}
        return await folder.ledger.write(lambda transaction: _register(transaction, fresh))

    async def finish(self, workspace: str, run_id: str, status: str, detail: str) -> Row:
        """End a run; returns its row. Raises NotFound, InvalidRequest for a status that ends nothing."""
        if status not in END_STATUSES:
            raise InvalidRequest(f"status must be one of {', '.join(END_STATUSES)}", field="status")
        folder = await self._workspaces.open(workspace)
        end = {"finished_time": self._clock(), "status": status, "status_detail": detail}

        def finish(transaction: LedgerTransaction) -> Row:
            row = {**_found(transaction.get("runs", {"run_id": run_name(run_id, "run_id")}), run_id), **end}
            checked_row("runs", row, "run")
            transaction.upsert("runs", [row])
            return row

        return await folder.ledger.write(finish)

    async def get(self, workspace: str, run_id: str) -> Row:
        """Return a run's row; raises NotFound."""
        folder = await self._workspaces.open(workspace)
        key = {"run_id": run_name(run_id, "run_id")}
        return _found(await folder.ledger.read(lambda reader: reader.get("runs", key)), run_id)

    async def page(self, workspace: str, kind: str, include_gate_runs: bool, request: PageRequest) -> Page[Row]:
        """Return runs in order of start, then id; gate arms only when asked for, by kind or by flag."""
        folder = await self._workspaces.open(workspace)
        with_gates = include_gate_runs or kind == "gate"
        query = Query(
            "runs",
            equal={"run_kind": kind} if kind else {},
            not_containing={} if with_gates else {"run_id": GATE_MARK},
            order=("started_time", "run_id"),
        )
        return await row_page(folder.ledger, query, request)

    async def append_answers(self, workspace: str, predictions: Sequence[Row], traces: Sequence[Row]) -> None:
        """Write predictions and traces, durably; the same keys again replace the rows."""
        checked_rows("predictions", predictions, "predictions")
        checked_rows("traces", traces, "traces")
        folder = await self._workspaces.open(workspace)
        if predictions or traces:
            await folder.ledger.append_answers(predictions, traces)

    async def prediction_page(self, workspace: str, wanted: PredictionFilter, request: PageRequest) -> Page[Row]:
        """Return predictions by (run, question)."""
        folder = await self._workspaces.open(workspace)
        return await row_page(folder.ledger, self._predictions(wanted), request)

    async def prediction_chunks(self, workspace: str, run_id: str, brief: bool) -> AsyncIterator[list[Row]]:
        """Yield all predictions of a run by question, a few hundred at a time, so that memory stays flat."""
        folder = await self._workspaces.open(workspace)
        query = self._predictions(PredictionFilter(run_name(run_id, "run_id"), (), True, brief))
        async for rows in row_chunks(folder.ledger, query, STREAM_ROWS):
            yield rows

    async def trace_page(
        self, workspace: str, run_id: str, question_ids: Sequence[str], request: PageRequest
    ) -> Page[Row]:
        """Return a run's traces by (run, question, step)."""
        folder = await self._workspaces.open(workspace)
        query = Query("traces", equal={"run_id": run_name(run_id, "run_id")}, one_of=_questions(question_ids))
        return await row_page(folder.ledger, query, request)

    async def append_llm_calls(self, workspace: str, calls: Sequence[Row]) -> None:
        """Write records of model calls, durably."""
        checked_rows("llm_calls", calls, "calls")
        ledger = await self._log(workspace)
        if calls:
            await ledger.append("llm_calls", calls)

    async def llm_call_sums(self, workspace: str, run_id: str) -> list[Row]:
        """Return sums by (role, outcome, cache status) over runs whose id is this or begins with it and `_`."""
        ledger = await self._log(workspace)
        by, columns = ("role", "outcome", "cache_status"), ("prompt_tokens", "completion_tokens")
        exact = Query("llm_calls", equal={"run_id": run_id} if run_id else {})
        parts = Query("llm_calls", starting_with={"run_id": f"{run_id}_"})

        rows = await ledger.read(lambda reader: reader.sums(exact, by, columns))
        if run_id:
            rows = _added(rows, await ledger.read(lambda reader: reader.sums(parts, by, columns)), by)
        return rows

    async def _log(self, workspace: str) -> Ledger:
        return (await self._workspaces.open(workspace)).ledger if workspace else self._own_log

    def _predictions(self, wanted: PredictionFilter) -> Query:
        everything = not wanted.run_id
        return Query(
            "predictions",
            equal={} if everything else {"run_id": run_name(wanted.run_id, "run_id")},
            one_of=_questions(wanted.question_ids),
            not_containing={"run_id": GATE_MARK} if everything and not wanted.include_gate_runs else {},
            columns=self._brief_columns if wanted.brief else (),
        )


def _register(transaction: LedgerTransaction, fresh: Row) -> tuple[Row, bool]:
    known = transaction.get("runs", {"run_id": fresh["run_id"]})
    again = {"finished_time": None, "status": _RUNNING, "status_detail": ""}
    row = fresh if known is None else {**known, **again}
    transaction.upsert("runs", [row])
    return row, known is None


def _questions(question_ids: Sequence[str]) -> dict[str, Sequence[str]]:
    if len(question_ids) > MAX_IDS_A_CALL:
        raise InvalidRequest(f"at most {MAX_IDS_A_CALL} questions a call", field="question_ids")
    return {"question_id": list(question_ids)} if question_ids else {}


def _found(row: Row | None, run_id: str) -> Row:
    if row is None:
        raise NotFound("run", run_id, field="run_id")
    return row


def _added(some: list[Row], others: list[Row], by: Sequence[str]) -> list[Row]:
    sums: dict[tuple[object, ...], Row] = {}
    for row in [*some, *others]:
        key = tuple(row[name] for name in by)
        known = sums.get(key)
        sums[key] = (
            row
            if known is None
            else {name: value if name in by else known[name] + value for name, value in row.items()}
        )
    return [sums[key] for key in sorted(sums)]
