"""The effective configuration as a person or a program wants to see it: every value and where it comes from."""

from __future__ import annotations

from typing import TypedDict

import orjson

from services.runtime.config import Section
from services.runtime.redaction import redact


class ShownSetting(TypedDict):
    """One row of the effective configuration; `value` is JSON-like and holds no secret."""

    key: str
    value: object
    source: str


def shown_settings(config: Section) -> list[ShownSetting]:
    """Every key of `config` with its redacted value and its source, in the order of declaration."""
    values = config.model_dump(mode="json")
    return [{"key": key, "value": redact(value, key), "source": config.source_of(key)} for key, value in values.items()]


def config_json(config: Section) -> str:
    """`shown_settings` as indented JSON, what `--show-config` prints."""
    return orjson.dumps(shown_settings(config), option=orjson.OPT_INDENT_2).decode()
