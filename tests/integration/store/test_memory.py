"""A run of 100,000 predictions is written and read in flat memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from videotree.store.v1 import run_service_pb2

from tests.builders.store_requests import WORKSPACE, make_workspace, prediction
from tests.fakes.store_process import store_process

_ROWS, _BATCH = 100_000, 1000
# 100,000 rows of about 1 kB held at once would be more than 100 MiB.
_ALLOWED_MIB = 45


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_qua_6_memory_stays_flat_over_100_000_predictions(tmp_path: Path) -> None:
    reasoning = "because " * 100
    async with store_process(tmp_path) as store:
        await make_workspace(store.client)
        at_start = store.resident_mib
        for start in range(0, _ROWS, _BATCH):
            rows = [prediction("r", f"q{start + each:06}", reasoning=reasoning) for each in range(_BATCH)]
            request = run_service_pb2.AppendPredictionsRequest(workspace=WORKSPACE, predictions=rows)
            await store.client.runs.AppendPredictions(request)
        after_writing = store.resident_mib
        seen = 0
        listing = run_service_pb2.StreamPredictionsRequest(workspace=WORKSPACE, run_id="r")
        async for message in store.client.runs.StreamPredictions(listing):
            seen += len(message.predictions)
        assert seen == _ROWS
        assert after_writing - at_start < _ALLOWED_MIB
        assert store.resident_mib - at_start < _ALLOWED_MIB
