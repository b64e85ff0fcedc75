"""Configuration: one section of `videotree.toml`, environment variables above it, command-line values above both.

A `Section` subclass declares the keys of one section. `load_section` fills it and remembers where each value came from.
Precedence: overrides > environment > `[section]` of the file > `[runtime]` of the file (keys that every service shares,
such as `token_file`) > the default. A variable is called `VIDEOTREE_<SECTION>_<KEY>`, or as the field's
`validation_alias` says, or, for all services alike, `VIDEOTREE_RUNTIME_<KEY>`. A secret (`SecretStr`) comes from its
variable or from the file that `<VARIABLE>_FILE` or the key `<key>_file` names, never from the file's own text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import AliasChoices, SecretStr, ValidationError

from services.runtime.config_sources import (
    SHARED_SECTION,
    config_path,
    key_of,
    read_tables,
    refuse_unshared_keys,
    settings_from_environment,
    settings_from_table,
    suggestion,
    variables_of,
)
from services.runtime.redaction import redact_text, remember_secret
from services.runtime.section import ConfigError, Section, ServingConfig, Setting, is_secret, secret_from_file

__all__ = ["SHARED_SECTION", "ConfigError", "Section", "ServingConfig", "load_section", "secret_from_file"]

_COMMAND_LINE = "command line"

T = TypeVar("T", bound=Section)


def load_section(model: type[T], section: str, overrides: Mapping[str, object] | None = None) -> T:
    """The values of `section` as a `model`.

    `overrides` are command-line values; those that are None count as not given. Raises ConfigError on an unknown key
    or variable, a wrong type, a value out of range, an unreadable file.
    """
    path = config_path()
    tables = read_tables(path)
    settings: dict[str, Setting] = {}
    shared = tables.get(SHARED_SECTION, {})
    refuse_unshared_keys(shared, path)
    settings |= settings_from_table(model, {k: v for k, v in shared.items() if key_of(model, k)}, path, SHARED_SECTION)
    if section != SHARED_SECTION:
        settings |= settings_from_table(model, tables.get(section, {}), path, section)
    settings |= settings_from_environment(model, section)
    settings |= {k: Setting(v, _COMMAND_LINE) for k, v in (overrides or {}).items() if v is not None}
    return _validated(model, section, settings, path)


def _validated(model: type[T], section: str, settings: Mapping[str, Setting], path: Path) -> T:
    try:
        config = model(**{key: setting.value for key, setting in settings.items()})  # type: ignore[arg-type]
    except ValidationError as error:
        raise ConfigError("; ".join(_faults(error, model, section, settings, path))) from None
    config._sources.update({key: setting.source for key, setting in settings.items()})
    _remember_secrets(config)
    return config


def _faults(
    error: ValidationError, model: type[Section], section: str, settings: Mapping[str, Setting], path: Path
) -> Iterable[str]:
    for fault in error.errors(include_url=False, include_context=False):
        location = [str(part) for part in fault["loc"]]
        key = _field_at(model, location[0]) if location else ""
        name = ".".join([key, *location[1:]]) or f"[{section}]"
        setting = settings.get(key)
        if fault["type"] == "missing":
            yield f"{path} [{section}]: {name} is missing; set it there or as {_variable_hint(model, section, key)}"
        elif fault["type"] == "extra_forbidden":
            source = setting.source if setting else f"{path} [{section}]"
            yield f"{source}: unknown key {name}{suggestion(location[-1], model.model_fields)}"
        else:
            secret = key in model.model_fields and is_secret(model.model_fields[key])
            got = "" if secret or setting is None else f" (got {redact_text(repr(fault['input']))})"
            yield f"{setting.source if setting else section}: {name}: {fault['msg']}{got}"


def _field_at(model: type[Section], location: str) -> str:
    """The field that pydantic's error location means: it may name the alias."""
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
        if location == name or location in choices:
            return name
    return location


def _variable_hint(model: type[Section], section: str, key: str) -> str:
    return variables_of(model, section, key)[0] if key in model.model_fields else f"VIDEOTREE_{section}_{key}".upper()


def _remember_secrets(config: Section) -> None:
    for name in type(config).model_fields:
        value = getattr(config, name)
        if isinstance(value, SecretStr):
            remember_secret(value.get_secret_value())
