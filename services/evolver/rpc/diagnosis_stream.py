"""A diagnosis as a stream: progress while it runs, then its result."""

import asyncio
from collections.abc import AsyncGenerator

from videotree.evolver.v1 import evolver_service_pb2 as pb

from services.evolver.rpc.metrics import count_diagnoses
from services.evolver.rpc.translate_diagnosis import result_message
from services.evolver.use_cases.diagnose_run import DiagnoseJob, DiagnoseRun, RunDiagnosis


async def diagnosis_stream(diagnose: DiagnoseRun, job: DiagnoseJob) -> AsyncGenerator[pb.DiagnoseResponse, None]:
    """Yield progress, then the result; a client that goes away cancels the diagnosis with all its calls."""
    told: asyncio.Queue[pb.DiagnoseProgress | None] = asyncio.Queue()

    async def tell(done: int, total: int) -> None:
        await told.put(pb.DiagnoseProgress(done_count=done, total_count=total))

    async def work() -> RunDiagnosis:
        try:
            return await diagnose.run(job, tell)
        finally:
            await told.put(None)

    task = asyncio.create_task(work())
    try:
        while (progress := await told.get()) is not None:
            yield pb.DiagnoseResponse(progress=progress)
        result = await task
        count_diagnoses(result)
        yield pb.DiagnoseResponse(result=result_message(result))
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
