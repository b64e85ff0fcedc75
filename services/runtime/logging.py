"""Structured logging: JSON lines in containers, readable lines on a terminal, never a secret in either."""

from __future__ import annotations

import logging
import sys
from typing import Any, Literal

import orjson
import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from services.runtime.redaction import redact
from services.runtime.request_context import current_request_id

LogFormat = Literal["auto", "json", "console"]


def configure_logging(service: str, fmt: LogFormat = "auto", level: str = "INFO") -> None:
    """Sends everything this process logs, through structlog or the standard library, to standard error.

    `auto` writes JSON unless standard error is a terminal. Each line carries the service and the request's id.
    """
    as_json = fmt == "json" or (fmt == "auto" and not sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _add_origin(service),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        redact_secrets,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(shared, as_json))
    # A library may give its own logger a lower level than the root's.
    handler.setLevel(level)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """A structured logger: `get_logger(__name__).info("event", key=value)`."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger


def redact_secrets(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """structlog processor that takes secrets out of the whole event, tracebacks included."""
    return {key: value if key.startswith("_") else redact(value, key) for key, value in event.items()}


def _add_origin(service: str) -> Processor:
    def add(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event["service"] = service
        request_id = current_request_id()
        if request_id:
            event["request_id"] = request_id
        return event

    return add


def _formatter(shared: list[Processor], as_json: bool) -> logging.Formatter:
    renderer: Processor = (
        structlog.processors.JSONRenderer(serializer=_to_json) if as_json else structlog.dev.ConsoleRenderer()
    )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *shared],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )


def _to_json(value: Any, **_options: Any) -> str:
    return orjson.dumps(value).decode()
