"""`videotree up`, `serve` and `config show`: the services themselves."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import orjson
import typer

from services.runtime.show_config import shown_settings
from services.trainer.adapters.embedded_stack import SERVICES, StackOptions, start_stack
from services.trainer.cli import options
from services.trainer.cli.output import print_rows
from services.trainer.cli.running import people, run_command
from services.trainer.cli.session import chosen_world, load_config
from services.trainer.config import configured_data_root
from services.trainer.domain.errors import StackFailed

SHOWN_SERVICES = (*SERVICES, "simulator")
config_app = typer.Typer(help="The configuration in force.", no_args_is_help=True)


def up(simulated: options.Simulated = False, world: options.World = None, data: options.Data = None) -> None:
    """Run the embedded stack in the foreground, on the ports that the other commands expect.

    Example: videotree up --simulated
    """

    async def work() -> None:
        chosen = chosen_world(simulated=simulated, world=world)
        stack = await start_stack(StackOptions(data or configured_data_root(), chosen, default_ports=True))
        try:
            for name, address in stack.addresses.items():
                people.print(f"{name:10} {address}", markup=False)
            people.print(f"logs in {stack.log_dir}; Ctrl-C stops the stack", markup=False)
            await stack.wait()
        except asyncio.CancelledError:
            people.print("stopping", markup=False)  # being told to stop is how this command ends well
        finally:
            await asyncio.shield(stack.stop())

    run_command(work())


def serve(
    service: Annotated[str, typer.Argument(help=f"One of {', '.join(SHOWN_SERVICES)}.")],
    port: Annotated[int | None, typer.Option("--port", help="Port to listen on; 0 takes a free one.")] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.")] = None,
) -> None:
    """Run one service in the foreground, in place of this process.

    Example: videotree serve store --port 50051
    """
    if service not in SHOWN_SERVICES:
        raise typer.BadParameter(f"{service!r} is none of {', '.join(SHOWN_SERVICES)}")
    arguments = [sys.executable, "-m", f"services.{service}.main"]
    if host is not None:
        arguments += ["--host", host]
    if port is not None:
        arguments += ["--port", str(port)]
    os.execv(sys.executable, arguments)  # noqa: S606 - our own interpreter and module


@config_app.command("show")
def config_show(
    service: Annotated[str | None, typer.Argument(help="Only this part.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Print the effective values and where each comes from, secrets redacted.

    Example: videotree config show inference
    """
    sections = (*SHOWN_SERVICES, "trainer")
    if service is not None and service not in sections:
        raise typer.BadParameter(f"{service!r} is none of {', '.join(sections)}")
    wanted = [service] if service else sections

    async def work() -> list[dict[str, Any]]:
        shown = await asyncio.gather(*(_settings_of(name) for name in wanted))
        return [{"section": name, **row} for name, rows in zip(wanted, shown, strict=True) for row in rows]

    rows = run_command(work())
    if not as_json:
        rows = [{**row, "value": "not set" if row["value"] is None else row["value"]} for row in rows]
    print_rows(rows, as_json=as_json, empty="nothing is configured")


async def _settings_of(name: str) -> Sequence[dict[str, Any]]:
    """What the service itself says: it alone knows its defaults and rules."""
    if name == "trainer":
        return [dict(row) for row in shown_settings(load_config())]
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        f"services.{name}.main",
        "--show-config",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    if process.returncode != 0:
        raise StackFailed(errors.decode(errors="replace").strip().splitlines()[-1])
    rows: list[dict[str, Any]] = orjson.loads(output)
    return rows
