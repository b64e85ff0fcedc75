"""Cost a unit from 100 to 100,000 units: gate consumption, store writes and queries, report rendering (QUA-6).

    python -m bench.scale [--quick]

The gate consumes a ladder of that many units, every one a flip. A store of its own, over gRPC, takes a run of that many
predictions in batches of 500, streams them back and turns their pages. The page of a run is rendered with that many
units of evidence in gates of 50 units, an edit each. A series is flat when the cost a unit at the largest size is at
most 1.5 times that at 1,000 units. Writes `bench/results/scale.json` and the plot `bench/results/scale.svg`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop
from videotree.store.v1 import (
    library_service_pb2,
    library_service_pb2_grpc,
    question_pb2,
    run_service_pb2,
    run_service_pb2_grpc,
    workspace_service_pb2,
    workspace_service_pb2_grpc,
)

from bench.children import service
from bench.gate import consume
from bench.record import RESULTS, Figure, table, write
from bench.store import row
from services.questions import Question
from services.runtime.channels import ClientCredentials, open_channel
from services.trainer.adapters.report_page import render_report
from services.trainer.domain.evaluations import HoldoutTable
from services.trainer.domain.runs import Run
from services.trainer.domain.step_rows import (
    EvolutionRecord,
    EvolutionRecordRow,
    GateEvidence,
    GateEvidenceRow,
    StepReport,
    StepReportRow,
)
from services.trainer.domain.workspaces import Best, CurrentVersions, Manifest
from services.trainer.use_cases.gather_report import RunReport

SIZES = (100, 1_000, 10_000, 100_000)
QUICK_SIZES = (100, 1_000, 10_000)
FLAT = 1.5
GATE_UNITS, TYPES = 50, 8
WORKSPACE = "scale"

Series = Mapping[int, float]


def gate_series(sizes: Sequence[int]) -> Series:
    """Microseconds a unit of consumption."""
    return {size: min(consume(size) for _ in range(3)) * 1e6 for size in sizes}


async def store_series(sizes: Sequence[int]) -> dict[str, Series]:
    """Microseconds a row of writing, streaming and paging."""
    with tempfile.TemporaryDirectory() as name:
        async with _store(Path(name)) as stub:
            measured = {size: await _measure_run(stub, size) for size in sizes}
    return {
        f"store: {kind}": {size: times[place] for size, times in measured.items()}
        for place, kind in enumerate(("write", "stream", "page"))
    }


@asynccontextmanager
async def _store(folder: Path) -> AsyncIterator[run_service_pb2_grpc.RunServiceStub]:
    environment = {"VIDEOTREE_DATA": str(folder / "data")}
    async with (
        service("store", folder, environment) as child,
        open_channel(f"127.0.0.1:{child.port}", ClientCredentials()) as channel,
    ):
        question = question_pb2.Question(question_id="q", task_type="T", text="t", options=["a", "b"], answer="A")
        library = library_service_pb2_grpc.LibraryServiceStub(channel)
        await library.ImportQuestions(
            library_service_pb2.ImportQuestionsRequest(dataset="sample", questions=[question]), wait_for_ready=True
        )
        initial = workspace_service_pb2.InitialContent(dataset="sample", skills={"a.md": "a"}, prompts={"p.md": "p"})
        workspaces = workspace_service_pb2_grpc.WorkspaceServiceStub(channel)
        await workspaces.CreateWorkspace(workspace_service_pb2.CreateWorkspaceRequest(name=WORKSPACE, initial=initial))
        yield run_service_pb2_grpc.RunServiceStub(channel)


async def _measure_run(stub: run_service_pb2_grpc.RunServiceStub, size: int) -> tuple[float, float, float]:
    run_id, began = f"run-{size}", time.perf_counter()
    for start in range(0, size, 500):
        rows = [row(run_id, number) for number in range(start, min(size, start + 500))]
        await stub.AppendPredictions(run_service_pb2.AppendPredictionsRequest(workspace=WORKSPACE, predictions=rows))
    written, streamed = time.perf_counter(), 0
    request = run_service_pb2.StreamPredictionsRequest(workspace=WORKSPACE, run_id=run_id, brief=True)
    async for message in stub.StreamPredictions(request):
        streamed += len(message.predictions)
    listed = time.perf_counter()
    paged, token = 0, ""
    while paged == 0 or token:
        page = run_service_pb2.ListPredictionsRequest(
            workspace=WORKSPACE, run_id=run_id, page_size=500, page_token=token, brief=True
        )
        answer = await stub.ListPredictions(page)
        paged, token = paged + len(answer.predictions), answer.next_page_token
    ended = time.perf_counter()
    if (streamed, paged) != (size, size):
        raise RuntimeError(f"{size} rows were written, {streamed} streamed and {paged} paged")
    return tuple((b - a) / size * 1e6 for a, b in ((began, written), (written, listed), (listed, ended)))  # type: ignore[return-value]  # three


def report_of(units: int) -> RunReport:
    """A run with `units` units of evidence, in gates of GATE_UNITS units, eight types a step, an edit for each gate."""
    gates = range(max(1, units // GATE_UNITS))
    return RunReport(
        run=Run("run-1", "train", skills_version="v1", prompts_version="v1", status="finished"),
        manifest=Manifest("scale", CurrentVersions("", "sample", "v1", "v1"), Best(), "", "", "", ""),
        metrics=(),
        holdout=HoldoutTable((), ()),
        steps=tuple(StepReportRow(0, gate // TYPES, _step(gate)) for gate in gates),
        evidence=tuple(
            GateEvidenceRow(0, gate // TYPES, GateEvidence(_type(gate), rank, f"unit-{rank}", False, True, 1.5, 1, 0))
            for gate in gates
            for rank in range(GATE_UNITS)
        ),
        edits=tuple(EvolutionRecordRow(0, gate // TYPES, _edit(gate)) for gate in gates),
        calls=(),
        questions={question.question_id: question for question in map(_question, range(units))},
    )


def _question(number: int) -> Question:
    return Question(f"q{number}", "v", "type 0", f"What happens in scene {number}?", ("a", "b"), "A", f"q{number}")


def _type(gate: int) -> str:
    return f"type {gate % TYPES}"


def _step(gate: int) -> StepReport:
    return StepReport(_type(gate), "REJECT_EXHAUSTED", "the ladder is used up", w=8, l=5, e_value=1.5, n_planned=50)


def _edit(gate: int) -> EvolutionRecord:
    diff = "--- a\n+++ b\n@@ -1 +1,2 @@\n Look twice.\n+Then look at the event before it."
    case = {"question_id": f"q{gate}", "tier": "1", "category": "skill_silent", "cause": "defect", "why": "none"}
    return EvolutionRecord(_type(gate), _type(gate), "rejected", cases_json=json.dumps([case]), unified_diff=diff)


def report_series(sizes: Sequence[int]) -> Series:
    """Microseconds a unit of rendering the whole page."""
    series = {}
    for size in sizes:
        report, times = report_of(size), []
        for _ in range(3 if size <= 10_000 else 1):
            began = time.perf_counter()
            render_report(report)
            times.append(time.perf_counter() - began)
        series[size] = min(times) / size * 1e6
    return series


def figures_of(series: Mapping[str, Series]) -> list[Figure]:
    """Each series: cost a unit at its largest size, beside that at 1,000 units."""
    figures = []
    for name, points in series.items():
        largest = max(points)
        ratio = points[largest] / points[1_000]
        figures.append(
            Figure(
                f"{name}: cost a unit at {largest:,}",
                points[largest],
                "us",
                f"ratio <= {FLAT}",
                ratio <= FLAT,
                "at 1,000:",
                points[1_000],
                ratio,
            )
        )
    return figures


def plot(series: Mapping[str, Series]) -> None:
    """Time against size, and time a unit against size."""
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(11, 4), layout="constrained")
    total, single = canvas.subplots(1, 2)
    for name, points in series.items():
        total.plot(list(points), [size * cost / 1e6 for size, cost in points.items()], marker="o", label=name)
        single.plot(list(points), list(points.values()), marker="o", label=name)
    total.set(xscale="log", yscale="log", xlabel="units", ylabel="seconds", title="Time against size")
    single.set(xscale="log", yscale="log", xlabel="units", ylabel="microseconds a unit", title="Cost a unit")
    single.legend(fontsize=8)
    canvas.savefig(RESULTS / "scale.svg")


async def measure(sizes: Sequence[int]) -> dict[str, Series]:
    """All series."""
    stored = await store_series(sizes)
    return {"gate: consume": gate_series(sizes), **stored, "report: render": report_series(sizes)}


def main(arguments: list[str] | None = None) -> int:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 10,000 units")
    series = uvloop.run(measure(QUICK_SIZES if parser.parse_args(arguments).quick else SIZES))
    figures = figures_of(series)
    print(table(figures))
    write("scale", __doc__ or "", figures, {"microseconds_a_unit": series})
    plot(series)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
