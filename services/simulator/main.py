"""Starts the simulator: `python -m services.simulator.main --port 8060 --world examples/sample/world.toml`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

import uvloop
from aiohttp import web

from services.runtime.config import ConfigError, load_section
from services.runtime.logging import configure_logging, get_logger
from services.runtime.show_config import config_json
from services.simulator.adapters.world_file import load_knowledge
from services.simulator.config import SimulatorConfig
from services.simulator.domain.errors import WorldError
from services.simulator.domain.models import Knowledge
from services.simulator.http_edge.server import SimulatorServer

_SHUTDOWN_SECONDS = 1.0
_log = get_logger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until SIGTERM or SIGINT; 0 after a clean stop, 1 when it could not start."""
    options = _parser().parse_args(arguments)
    overrides = {"host": options.host, "port": options.port, "world": options.world}
    try:
        config = load_section(SimulatorConfig, "simulator", overrides)
        if options.show_config:
            sys.stdout.write(config_json(config) + "\n")
            return 0
        knowledge = load_knowledge(config.world)
    except (ConfigError, WorldError, OSError) as error:
        sys.stderr.write(f"videotree simulator: {error}\n")
        return 1
    configure_logging("simulator", config.log_format, config.log_level)
    return uvloop.run(_serve(config, knowledge))


async def _serve(config: SimulatorConfig, knowledge: Knowledge) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    runner = web.AppRunner(
        SimulatorServer(knowledge).application(),
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=_SHUTDOWN_SECONDS,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, config.host, config.port, backlog=1024)
        await site.start()
        port = runner.addresses[0][1]
        _log.info("serving", host=config.host, port=port, world=str(config.world or "default"))
        await stopping.wait()
        _log.info("stopping")
    except OSError as error:
        _log.error("can't start", reason=f"can't listen on {config.host}:{config.port}: {error.strerror}")
        return 1
    finally:
        await runner.cleanup()
    _log.info("stopped")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m services.simulator.main", description="The simulated model.")
    parser.add_argument("--show-config", action="store_true", help="print the effective configuration as JSON and exit")
    parser.add_argument("--host", help="address to listen on")
    parser.add_argument("--port", type=int, help="HTTP port; 0 takes a free one")
    parser.add_argument("--world", help="world file (TOML)")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
