"""Throughput of the store against a bare SQLite loop in the same run (QUA-3), and cost a row against size (QUA-6).

    python -m bench.store

The store runs as its own process with its own data root; 16 writers call it over gRPC. The bare loop commits the same
rows to the same kind of file (WAL, synchronous=FULL), 1, 16 or 100 a transaction. The sides take turns, so that ratios
count and not the disk's mood. Two bounds stand beside them: what one commit costs on this disk, and how many calls the
same process answers when a call does nothing (its health check). Prints a table and writes `bench/results/store.json`
and, when matplotlib is there, `bench/results/store-scale.svg`. BENCH_SECONDS sets the length of one turn.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import grpc
import uvloop
from grpc_health.v1 import health_pb2, health_pb2_grpc
from videotree.store.v1 import (
    library_service_pb2,
    library_service_pb2_grpc,
    prediction_pb2,
    question_pb2,
    run_service_pb2,
    run_service_pb2_grpc,
    training_service_pb2,
    training_service_pb2_grpc,
    workspace_service_pb2,
    workspace_service_pb2_grpc,
)

from bench.record import RESULTS, Figure, median_with_spread, shown, table, write
from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.testing import free_port
from services.store.adapters import database_dialect, schema
from services.store.adapters.tables import Base
from services.store.rpc.row_codec import to_row

ROOT = Path(__file__).resolve().parents[1]
WORKSPACE = "bench"
WRITERS = 16
SECONDS = float(os.environ.get("BENCH_SECONDS", "4"))
SIZES = (1_000, 10_000, 100_000)
ROUNDS = 3
SHARE_OF_BARE_LOOP = 0.6
ENOUGH_ROWS_A_SECOND = 20_000


def row(run_id: str, number: int) -> prediction_pb2.Prediction:
    """A prediction of the usual size, about 1 kB."""
    return prediction_pb2.Prediction(
        run_id=run_id,
        question_id=f"question-{number:07}",
        video_id="video-1",
        task_type="Action Reasoning",
        prediction="A",
        answer="B",
        evidence=["video-1_L1_0", "video-1_L2_3"],
        reasoning="The dog runs before the door opens." * 4,
        steps_used=4,
        prompt_tokens=1200,
        completion_tokens=300,
        stop_reason="finished",
        steps_json=json.dumps([{"tool": "view_node", "args": {"node_id": "video-1_L1_0"}}] * 8),
        model_calls=5,
        unit_id=f"question-{number:07}",
    )


def bare_loop(folder: Path, group: int, seconds: float) -> float:
    """Rows a second of a loop that commits `group` rows at a time."""
    path = folder / f"bare-{group}-{time.monotonic_ns()}.db"
    engine = database_dialect.writing_engine(database_dialect.sqlite_url(path))
    schema.upgrade(engine)
    engine.dispose()
    columns = [column.name for column in Base.metadata.tables["predictions"].columns]
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    statement = f"INSERT INTO predictions ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    template = {**to_row(row("r", 0)), "evidence": '["video-1_L1_0", "video-1_L2_3"]'}
    written, begin = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - begin) < seconds:
        rows = [{**template, "question_id": f"question-{written + each:07}"} for each in range(group)]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(statement, [[each[name] for name in columns] for each in rows])
        connection.execute("COMMIT")
        written += group
    connection.close()
    return written / elapsed


async def store_rate(stub: run_service_pb2_grpc.RunServiceStub, batch: int, run_id: str, seconds: float) -> float:
    """Rows a second that 16 writers get acknowledged, `batch` rows a call."""
    written, begin = 0, time.perf_counter()

    async def write(writer: int) -> None:
        nonlocal written
        number = 0
        rows = [row(f"{run_id}_w{writer}", each) for each in range(batch)]
        while time.perf_counter() - begin < seconds:
            for each in rows:
                each.question_id = f"question-{number:07}"
                number += 1
            request = run_service_pb2.AppendPredictionsRequest(workspace=WORKSPACE, predictions=rows)
            await stub.AppendPredictions(request)
            written += batch

    await asyncio.gather(*(write(writer) for writer in range(WRITERS)))
    return written / (time.perf_counter() - begin)


async def empty_rate(stub: health_pb2_grpc.HealthStub, seconds: float) -> float:
    """Calls a second that the same process answers to as many callers when there is nothing to do."""
    answered, begin = 0, time.perf_counter()

    async def ask() -> None:
        nonlocal answered
        while time.perf_counter() - begin < seconds:
            await stub.Check(health_pb2.HealthCheckRequest())
            answered += 1

    await asyncio.gather(*(ask() for _ in range(WRITERS)))
    return answered / (time.perf_counter() - begin)


async def scale(channel: grpc.aio.Channel) -> list[dict[str, float]]:
    """Microseconds a row of writing, listing, clearing beside and committing at each size."""
    runs = run_service_pb2_grpc.RunServiceStub(channel)
    training = training_service_pb2_grpc.TrainingServiceStub(channel)
    figures, written = [], 0
    for size in SIZES:
        begin = time.perf_counter()
        first = written
        while written < size:
            rows = [row("scale", written + each) for each in range(min(500, size - written))]
            await runs.AppendPredictions(
                run_service_pb2.AppendPredictionsRequest(workspace=WORKSPACE, predictions=rows)
            )
            written += len(rows)
        write_us = (time.perf_counter() - begin) / (written - first) * 1e6
        begin, listed = time.perf_counter(), 0
        listing = run_service_pb2.StreamPredictionsRequest(workspace=WORKSPACE, run_id="scale", brief=True)
        async for message in runs.StreamPredictions(listing):
            listed += len(message.predictions)
        list_us = (time.perf_counter() - begin) / listed * 1e6
        clear_ms = await _median_ms(lambda: training.ClearStep(_clear()))
        page_ms = await _median_ms(lambda: runs.ListPredictions(_page()))
        figures.append(
            {"rows": size, "write_us": write_us, "list_us": list_us, "clear_ms": clear_ms, "page_ms": page_ms}
        )
    return figures


def _clear() -> training_service_pb2.ClearStepRequest:
    return training_service_pb2.ClearStepRequest(workspace=WORKSPACE, run_id="absent", epoch=0, step=1)


def _page() -> run_service_pb2.ListPredictionsRequest:
    return run_service_pb2.ListPredictionsRequest(workspace=WORKSPACE, run_id="scale", page_size=100, brief=True)


async def _median_ms(call: Callable[[], Awaitable[object]]) -> float:
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        await call()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


async def _prepare(channel: grpc.aio.Channel) -> None:
    question = question_pb2.Question(question_id="q", task_type="T", text="t", options=["a", "b"], answer="A")
    await library_service_pb2_grpc.LibraryServiceStub(channel).ImportQuestions(
        library_service_pb2.ImportQuestionsRequest(dataset="sample", questions=[question])
    )
    initial = workspace_service_pb2.InitialContent(dataset="sample", skills={"a.md": "a"}, prompts={"p.md": "p"})
    await workspace_service_pb2_grpc.WorkspaceServiceStub(channel).CreateWorkspace(
        workspace_service_pb2.CreateWorkspaceRequest(name=WORKSPACE, initial=initial)
    )


async def _measure(folder: Path, channel: grpc.aio.Channel, pid: int) -> dict[str, object]:
    stub = run_service_pb2_grpc.RunServiceStub(channel)
    idle_mib = _memory_mib(pid)
    rates: dict[str, list[float]] = {
        name: [] for name in ("bare_1", "bare_16", "store_1", "empty", "bare_100", "store_100")
    }
    cpu_us = 0.0
    for turn in range(ROUNDS):
        rates["bare_1"].append(bare_loop(folder, 1, SECONDS / 4))
        rates["bare_16"].append(bare_loop(folder, 16, SECONDS))
        before = _cpu_seconds(pid)
        rates["store_1"].append(await store_rate(stub, 1, f"one{turn}", SECONDS))
        cpu_us = (_cpu_seconds(pid) - before) / (rates["store_1"][-1] * SECONDS) * 1e6
        rates["empty"].append(await empty_rate(health_pb2_grpc.HealthStub(channel), SECONDS / 2))
        rates["bare_100"].append(bare_loop(folder, 100, SECONDS))
        rates["store_100"].append(await store_rate(stub, 100, f"many{turn}", SECONDS))
    median = {name: statistics.median(each) for name, each in rates.items()}
    return {
        "rows_per_second": median,
        "rows_per_second_of_each_turn": rates,
        "single_ratio": median["store_1"] / median["bare_16"],
        "batch_ratio": median["store_100"] / median["bare_100"],
        "store_cpu_us_per_single_row": cpu_us,
        "scale": await scale(channel),
        "idle_mib": idle_mib,
        "mib_after_all": _memory_mib(pid),
    }


def _rows(results: dict[str, object]) -> list[Figure]:
    runs: dict[str, list[float]] = results["rows_per_second_of_each_turn"]  # type: ignore[assignment]  # as _measure wrote it
    rows = []
    for what, ours, bare, least in (
        ("16 writers, single rows", "store_1", "bare_16", float("inf")),
        ("16 writers, batches of 100", "store_100", "bare_100", ENOUGH_ROWS_A_SECOND),
    ):
        (rate, spread), (reference, _) = median_with_spread(runs[ours]), median_with_spread(runs[bare])
        target = f"ratio >= {SHARE_OF_BARE_LOOP}" + (f" or >= {least:,.0f} rows/s" if least < float("inf") else "")
        met = rate / reference >= SHARE_OF_BARE_LOOP or rate >= least
        rows.append(Figure(what, rate, "rows/s", target, met, "bare loop:", reference, rate / reference, spread))
    (empty, spread), (single, _) = median_with_spread(runs["empty"]), median_with_spread(runs["store_1"])
    rows.append(Figure("16 callers, calls that do nothing", empty, "calls/s", spread=spread))
    rows.append(Figure("single rows / calls that do nothing", single / empty, "x"))
    rows.append(shown("bare loop, a commit a row", runs["bare_1"], "commits/s"))
    return rows


def _show(results: dict[str, object], figures: Sequence[dict[str, float]]) -> None:
    print(f"\n{'rows':>8}{'write us/row':>14}{'stream us/row':>15}{'clear ms':>10}{'page ms':>10}")
    for each in figures:
        row_text = f"{each['write_us']:14.1f}{each['list_us']:15.1f}{each['clear_ms']:10.2f}{each['page_ms']:10.2f}"
        print(f"{each['rows']:8.0f}{row_text}")
    print(f"\nresident: {results['idle_mib']:.0f} MiB idle, {results['mib_after_all']:.0f} MiB after all of it")


def _plot(figures: Sequence[dict[str, float]], path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        print("no plot: matplotlib is not installed")
        return
    figure = Figure(figsize=(6, 4))
    axes = figure.add_subplot()
    for name, label in (("write_us", "write"), ("list_us", "stream")):
        axes.plot([each["rows"] for each in figures], [each[name] for each in figures], marker="o", label=label)
    axes.set(xscale="log", xlabel="predictions in the run", ylabel="microseconds a row", ylim=(0, None))
    axes.legend()
    figure.savefig(path)


async def _on_a_store(folder: Path) -> dict[str, object]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "services.store.main", "--port", str(port), "--metrics-port", "0"),
        env={**os.environ, "VIDEOTREE_DATA": str(folder / "data"), "PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}"},
        cwd=folder,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with open_channel(f"127.0.0.1:{port}", ClientCredentials()) as channel:
            await asyncio.wait_for(channel.channel_ready(), 60)
            await _prepare(channel)
            return await _measure(folder, channel, process.pid)
    finally:
        process.terminate()
        await process.wait()


async def main() -> int:
    """Measures everything; returns the exit code."""
    with tempfile.TemporaryDirectory() as name:
        results = await _on_a_store(Path(name))
    figures: Sequence[dict[str, float]] = results["scale"]  # type: ignore[assignment]  # as _measure wrote it
    rows = _rows(results)
    print(table(rows))
    _show(results, figures)
    write("store", __doc__ or "", rows, results)
    _plot(figures, RESULTS / "store-scale.svg")
    return 0


if __name__ == "__main__":
    raise SystemExit(uvloop.run(main()))
