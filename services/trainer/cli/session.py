"""The stack that a command talks to: the running one, or an embedded one for the duration of the command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from services.runtime.bundled import bundled_path
from services.runtime.config import load_section
from services.trainer.adapters.embedded_stack import SERVICES, EmbeddedStack, StackOptions, is_serving, start_stack
from services.trainer.adapters.wiring import connected
from services.trainer.cli.running import people
from services.trainer.config import TrainerConfig, configured_data_root
from services.trainer.domain.errors import StackFailed
from services.trainer.use_cases.ports import Services

T = TypeVar("T")

_SAME_COMMAND = "the same command goes on where it can"
_NOTICED_SECONDS = 0.5
"""By then the end of a child process is known, when it is the cause of a failed call."""
STORE_ONLY = ("store",)
"""What commands need that only read or write data."""


@dataclass(frozen=True, slots=True)
class Session:
    """A command's services and settings; `stack` is the embedded one, which lives only as long as the command."""

    services: Services
    config: TrainerConfig
    addresses: Mapping[str, str]
    stack: EmbeddedStack | None = None

    async def while_serving(self, work: Coroutine[None, None, T], go_on: str = _SAME_COMMAND) -> T:
        """The result of `work`, which is cancelled as soon as a service of the embedded stack has ended.

        What goes on without that service would count its absence as failed questions. Raises StackFailed then, which
        also says how to `go_on`.
        """
        task = asyncio.ensure_future(work)
        if self.stack is None:
            return await task
        ended = asyncio.ensure_future(self.stack.wait())
        try:
            await asyncio.wait({task, ended}, return_when=asyncio.FIRST_COMPLETED)
            if task.done() and task.exception() is not None:
                await asyncio.wait({ended}, timeout=_NOTICED_SECONDS)
            if ended.done():
                ended.result()
            return task.result()
        except StackFailed as failure:
            raise StackFailed(f"{failure}; {go_on}") from failure
        finally:
            task.cancel()
            ended.cancel()
            await asyncio.gather(task, ended, return_exceptions=True)


def sample_path() -> Path:
    """The folder of the bundled sample."""
    return bundled_path("examples") / "sample"


def chosen_world(*, simulated: bool, world: Path | None) -> Path | None:
    """The world file of the simulated model where one is asked for: the one named, or the bundled sample's."""
    return (world or sample_path() / "world.toml") if simulated else None


def load_config(overrides: Mapping[str, object] | None = None) -> TrainerConfig:
    """The `[trainer]` section with command-line values above it."""
    return load_section(TrainerConfig, "trainer", overrides)


@asynccontextmanager
async def open_session(
    config: TrainerConfig, *, data: Path | None, world: Path | None = None, needs: tuple[str, ...] = SERVICES
) -> AsyncIterator[Session]:
    """A session; `world` (a simulated model) or `data` ask for an embedded stack of their own.

    Only the services in `needs` have to answer, or are started.

    Raises StackFailed when the embedded stack doesn't start, when only some of the configured services answer, or
    when none does although their addresses were set.
    """
    addresses = {name: str(getattr(config, f"{name}_address")) for name in SERVICES}
    if world is None and data is None and await _running({name: addresses[name] for name in needs}):
        async with connected(addresses, config.call_timeout_seconds) as services:
            yield Session(services, config, addresses)
        return
    if world is None and data is None:
        _require_unset(config, needs)
    root = data or configured_data_root()
    what = "the embedded stack" if needs == SERVICES else f"an embedded {' and '.join(needs)}"
    people.print(f"starting {what} (data in {root}) ...", markup=False)
    stack = await start_stack(StackOptions(root, world, needs))
    try:
        async with connected({**addresses, **stack.addresses}, config.call_timeout_seconds) as services:
            yield Session(services, config, {**addresses, **stack.addresses}, stack)
    finally:
        await asyncio.shield(stack.stop())


def addresses_are_set(config: TrainerConfig) -> bool:
    """Whether somebody said where the services are: then the demo runs on those."""
    return any(config.source_of(f"{name}_address") != "default" for name in SERVICES)


def _require_unset(config: TrainerConfig, needs: tuple[str, ...]) -> None:
    """Somebody who says where the services are means those, and not an embedded stack in their stead."""
    for name in needs:
        source = config.source_of(f"{name}_address")
        if source != "default":
            address = getattr(config, f"{name}_address")
            raise StackFailed(f"no {name} answers at {address} (from {source}); start it, or see `videotree doctor`")


async def _running(addresses: Mapping[str, str]) -> bool:
    """Whether the configured stack serves. Raises StackFailed when a part of it doesn't."""
    serving = await asyncio.gather(*(is_serving(address) for address in addresses.values()))
    if any(serving) and not all(serving):
        away = [f"{name} at {addresses[name]}" for name, ok in zip(addresses, serving, strict=True) if not ok]
        raise StackFailed(f"part of the stack doesn't serve: {', '.join(away)}; start it, or see `videotree doctor`")
    return all(serving)
