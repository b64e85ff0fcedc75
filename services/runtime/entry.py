"""The command line that every service's `main` shares."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from services.runtime.config import ConfigError, ServingConfig, load_section
from services.runtime.serving import ServiceParts, run_service
from services.runtime.show_config import config_json

C = TypeVar("C", bound=ServingConfig)


def service_main(
    section: str,
    model: type[C],
    build: Callable[[C], Awaitable[ServiceParts]],
    arguments: Sequence[str] | None = None,
) -> int:
    """Reads `[section]`, then shows it (`--show-config`) or serves what `build` makes of it; returns the exit code."""
    options = _parser(section).parse_args(arguments)
    overrides = {"host": options.host, "port": options.port, "metrics_port": options.metrics_port}
    try:
        config = load_section(model, section, overrides)
    except ConfigError as error:
        sys.stderr.write(f"videotree {section}: {error}\n")
        return 1
    if options.show_config:
        sys.stdout.write(config_json(config) + "\n")
        return 0
    return run_service(section, config, lambda: build(config))


def _parser(section: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m services.{section}.main", description=f"The {section} service.")
    parser.add_argument("--show-config", action="store_true", help="print the effective configuration as JSON and exit")
    parser.add_argument("--host", help="address to listen on")
    parser.add_argument("--port", type=int, help="gRPC port; 0 takes a free one")
    parser.add_argument("--metrics-port", type=int, help="port of the Prometheus page; 0 switches it off")
    return parser
