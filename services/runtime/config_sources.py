"""Where the values of a section come from: the tables of the file and the variables of the environment."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import AliasChoices
from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource

from services.runtime.section import ConfigError, Section, ServingConfig, Setting, is_secret, reason, secret_from_file

CONFIG_VARIABLE = "VIDEOTREE_CONFIG"
CONFIG_FILE = "videotree.toml"
SHARED_SECTION = "runtime"
SECTIONS = ("store", "inference", "gate", "evolver", "trainer", "simulator", SHARED_SECTION)


def config_path() -> Path:
    """The file that VIDEOTREE_CONFIG names, or `videotree.toml` in the working folder."""
    return Path(os.environ.get(CONFIG_VARIABLE) or CONFIG_FILE)


def read_tables(path: Path) -> dict[str, dict[str, Any]]:
    """The sections of the file; none when the default file doesn't exist. Raises ConfigError when it can't be read."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if CONFIG_VARIABLE in os.environ:
            raise ConfigError(f"{CONFIG_VARIABLE} names {path}, which doesn't exist; unset it or create it") from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: can't be read as TOML: {reason(error)}") from error
    for name, table in tables.items():
        if name not in SECTIONS:
            raise ConfigError(f"{path}: unknown section [{name}]{suggestion(name, SECTIONS)}")
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: {name} must be a section, written as [{name}]")
    return tables


def refuse_unshared_keys(shared: Mapping[str, Any], path: Path) -> None:
    """Each process reads its part of `[runtime]`; what none of them knows is a mistake."""
    for key in shared:
        if key not in ServingConfig.model_fields:
            known = ServingConfig.model_fields
            raise ConfigError(f"{path} [{SHARED_SECTION}]: unknown key {key}{suggestion(key, known)}")


def settings_from_table(model: type[Section], table: Mapping[str, Any], path: Path, section: str) -> dict[str, Setting]:
    """The values of one table of the file. Raises ConfigError on an unknown key and on a secret in the file's text."""
    source = f"{path} [{section}]"
    found: dict[str, Setting] = {}
    for key, value in table.items():
        name = key_of(model, key)
        if name is None:
            raise ConfigError(f"{source}: unknown key {key}{suggestion(key, model.model_fields)}")
        if name != key:
            found[name] = Setting(secret_from_file(path.parent / str(value), f"{source} {key}"), f"{source} {key}")
        elif is_secret(model.model_fields[name]):
            raise ConfigError(
                f"{source}: {key} is a secret and doesn't belong into this file; "
                f"set {variables_of(model, section, name)[0]} or name a file with {key}_file"
            )
        else:
            found[name] = Setting(value, source)
    return found


def key_of(model: type[Section], key: str) -> str | None:
    """The field that `key` of a file sets: itself, or the secret whose file it names."""
    if key in model.model_fields:
        return key
    name = key.removesuffix("_file")
    field = model.model_fields.get(name)
    return name if name != key and field is not None and is_secret(field) else None


def settings_from_environment(model: type[Section], section: str) -> dict[str, Setting]:
    """The values of the environment. Raises ConfigError on a variable that looks like a key and is none."""
    decoder = EnvSettingsSource(model)
    found: dict[str, Setting] = {}
    for name, field in model.model_fields.items():
        for variable in variables_of(model, section, name):
            setting = _from_variable(decoder, name, field, variable)
            if setting is None:
                continue
            found.setdefault(name, setting)
    _refuse_unknown_variables(model, section)
    return found


def _from_variable(decoder: EnvSettingsSource, name: str, field: FieldInfo, variable: str) -> Setting | None:
    # Compose files can't leave a variable out, only empty; an empty one counts as not set.
    raw = os.environ.get(variable) or None
    if is_secret(field) and os.environ.get(f"{variable}_FILE"):
        if raw is not None:
            raise ConfigError(f"{variable} and {variable}_FILE are both set; unset one of them")
        return Setting(secret_from_file(os.environ[f"{variable}_FILE"], f"{variable}_FILE"), f"{variable}_FILE")
    if raw is None:
        return None
    try:
        value = decoder.prepare_field_value(name, field, raw, decoder.field_is_complex(field))
    except ValueError as error:
        raise ConfigError(f"{variable}: must be JSON: {reason(error)}") from error
    return Setting(value, variable)


def variables_of(model: type[Section], section: str, name: str) -> list[str]:
    """The variables that may set a field, strongest first."""
    alias = model.model_fields[name].validation_alias
    if isinstance(alias, AliasChoices):
        names = [choice for choice in alias.choices if isinstance(choice, str)]
    else:
        names = [alias] if isinstance(alias, str) else []
    own = [f"VIDEOTREE_{part}_{name}".upper() for part in (section, SHARED_SECTION)]
    return list(dict.fromkeys([*names, *own]))


def _refuse_unknown_variables(model: type[Section], section: str) -> None:
    own, shared = (f"VIDEOTREE_{part}_".upper() for part in (section, SHARED_SECTION))
    known = {variable for name in model.model_fields for variable in variables_of(model, section, name)}
    known |= {f"{variable}_FILE" for variable in known}
    known |= {f"{shared}{name}".upper() for name in ServingConfig.model_fields}
    # VIDEOTREE_STORE_ADDRESS says to the other services where the store is; it is none of the store's own keys.
    known.add(f"{own}ADDRESS")
    for variable in sorted(os.environ):
        if variable.startswith((own, shared)) and variable not in known:
            raise ConfigError(f"unknown environment variable {variable}{suggestion(variable, known)}")


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of an error about an unknown name: the nearest known one, or all of them."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else f"; known: {', '.join(sorted(known))}"
