"""An embedded stack: where its data lies, and what its end does to the command that works on it (CLI-1, QUA-11)."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from services.runtime.config import ConfigError
from services.trainer.adapters.embedded_stack import EmbeddedStack, StackOptions, start_stack
from services.trainer.cli.session import Session
from services.trainer.config import TrainerConfig, configured_data_root
from services.trainer.domain.errors import ServiceFailed, StackFailed
from services.trainer.use_cases.ports import Services


class Stack:
    """A stack whose end a test decides."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    async def wait(self) -> None:
        await self.ended.wait()
        raise StackFailed("simulator was killed by signal 9 (Killed)")


def session(stack: Stack | None) -> Session:
    services = cast("Services", None)
    return Session(services, TrainerConfig(), {}, cast("EmbeddedStack | None", stack))


async def test_work_on_an_embedded_stack_ends_as_soon_as_one_of_its_services_does() -> None:
    stack = Stack()
    cancelled = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async def end() -> None:
        await asyncio.sleep(0)
        stack.ended.set()

    with pytest.raises(StackFailed, match="simulator was killed"):
        await asyncio.gather(session(stack).while_serving(work()), end())
    assert cancelled.is_set()


async def test_a_call_that_failed_because_a_service_ended_is_told_as_its_end() -> None:
    stack = Stack()

    async def work() -> None:
        asyncio.get_running_loop().call_later(0.05, stack.ended.set)
        raise ServiceFailed("store", "UNAVAILABLE", "nothing answers")

    with pytest.raises(StackFailed, match="simulator was killed"):
        await session(stack).while_serving(work())


@pytest.mark.parametrize("embedded", [True, False])
async def test_the_result_and_other_failures_come_through(embedded: bool) -> None:
    async def good() -> int:
        return 3

    async def bad() -> int:
        raise ServiceFailed("store", "NOT_FOUND", "no such run")

    stack = Stack() if embedded else None
    assert await session(stack).while_serving(good()) == 3
    with pytest.raises(ServiceFailed, match="no such run"):
        await session(stack).while_serving(bad())


async def test_being_cancelled_cancels_the_work() -> None:
    ended: list[Any] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    task = asyncio.ensure_future(session(Stack()).while_serving(work()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


async def test_a_data_root_that_cannot_be_used_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StackFailed, match=r"file/data can't be used \(Not a directory\); name another with --data"):
        await start_stack(StackOptions(tmp_path / "file" / "data", None, ("store",)))


def test_the_data_root_is_that_of_the_variable_else_of_the_file_else_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIDEOTREE_DATA", raising=False)
    monkeypatch.delenv("VIDEOTREE_CONFIG", raising=False)
    assert configured_data_root() == Path("data")
    Path("videotree.toml").write_text('[store]\ndata = "of-the-file"\n')
    assert configured_data_root() == Path("of-the-file")
    monkeypatch.setenv("VIDEOTREE_DATA", "of-the-variable")
    assert configured_data_root() == Path("of-the-variable")
    monkeypatch.setenv("VIDEOTREE_DATA", "")
    Path("videotree.toml").write_text("[store]\ndata = 3\n")
    with pytest.raises(ConfigError, match="data must be a path"):
        configured_data_root()
