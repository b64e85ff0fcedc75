"""The embedded stack as real child processes."""

import os
from pathlib import Path

import pytest

from services.trainer.adapters.child_process import start_child
from services.trainer.adapters.embedded_stack import StackOptions, is_serving, start_stack
from services.trainer.domain.errors import StackFailed

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def _services_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), str(ROOT / "gen")]))
    for name in ("LLM_BASE_URL", "LLM_MODEL", "VIDEOTREE_CONFIG"):
        monkeypatch.delenv(name, raising=False)


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_cli_1_a_store_alone_serves_and_stops(tmp_path: Path) -> None:
    stack = await start_stack(StackOptions(tmp_path / "data", None, services=("store",)))
    assert await is_serving(stack.addresses["store"])
    assert set(stack.addresses) == {"store"}
    await stack.stop()
    assert not await is_serving(stack.addresses["store"])
    assert not any(alive(child.pid) for child in stack.children)


async def test_sto_1_a_second_stack_on_a_data_root_names_the_owner(tmp_path: Path) -> None:
    stack = await start_stack(StackOptions(tmp_path / "data", None, services=("store",)))
    try:
        with pytest.raises(StackFailed, match=str(stack.children[0].pid)):
            await start_stack(StackOptions(tmp_path / "data", None, services=("store",)))
    finally:
        await stack.stop()


async def test_cli_1_a_service_that_cannot_start_says_why_and_leaves_nothing_running(tmp_path: Path) -> None:
    with pytest.raises(StackFailed, match="inference ended with code 1: no model endpoint is configured"):
        await start_stack(StackOptions(tmp_path / "data", None, services=("store", "inference")))
    again = await start_stack(StackOptions(tmp_path / "data", None, services=("store",)))
    await again.stop()


async def test_a_stack_that_loses_a_service_notices(tmp_path: Path) -> None:
    stack = await start_stack(StackOptions(tmp_path / "data", None, services=("store",)))
    os.kill(stack.children[0].pid, 9)
    with pytest.raises(StackFailed, match="store was killed by signal 9"):
        await stack.wait()
    await stack.stop()


async def test_a_childs_last_words_are_its_own_and_not_an_earlier_ones(tmp_path: Path) -> None:
    log = tmp_path / "child.log"
    log.write_text('{"reason": "an old story"}\n')
    child = await start_child("child", ["services.no_such_module"], {}, log)
    await child.wait()
    with pytest.raises(StackFailed, match="No module named"):
        child.require_alive()
