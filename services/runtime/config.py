"""Configuration: one section of `videotree.toml`, environment variables above it, command-line values above both.

A `Section` subclass declares the keys of one section. `load_section` fills it and remembers where each value came from.
Precedence: overrides > environment > `[section]` of the file > `[runtime]` of the file (keys that every service shares,
such as `token_file`) > the default. A variable is called `VIDEOTREE_<SECTION>_<KEY>`, or as the field's
`validation_alias` says, or, for all services alike, `VIDEOTREE_RUNTIME_<KEY>`. A secret (`SecretStr`) comes from its
variable or from the file that `<VARIABLE>_FILE` or the key `<key>_file` names, never from the file's own text.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from pydantic import AliasChoices, Field, PrivateAttr, SecretStr, ValidationError, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from services.runtime.redaction import redact_text, remember_secret

CONFIG_VARIABLE = "VIDEOTREE_CONFIG"
CONFIG_FILE = "videotree.toml"
SHARED_SECTION = "runtime"
SECTIONS = ("store", "inference", "gate", "evolver", "trainer", "simulator", SHARED_SECTION)

_HIGHEST_PORT = 65535
_ORIGINS = {"default": "default", "override": "command line"}


class ConfigError(Exception):
    """A value is missing or wrong; the text names the key, the file or variable it came from, and the fix."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One value and the place it was read from: `default`, `command line`, a variable, or a file with its section."""

    value: object
    source: str


class Section(BaseSettings):
    """Base of one section's model. Built directly it reads neither files nor the environment: `load_section` does."""

    model_config = SettingsConfigDict(
        extra="forbid", frozen=True, validate_by_name=True, validate_by_alias=True, protected_namespaces=()
    )
    _sources: dict[str, str] = PrivateAttr(default_factory=dict)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only the values handed in count; `load_section` has merged the others already."""
        return (init_settings,)

    def source_of(self, key: str) -> str:
        """Where the value of `key` came from; `default` when nothing set it."""
        return self._sources.get(key, "default")


class ServingConfig(Section):
    """What every service needs to serve; a service's own section adds its keys and its default ports."""

    host: str = Field("127.0.0.1", description="Address to listen on")
    port: int = Field(description="gRPC port; 0 takes a free one")
    metrics_port: int = Field(description="Port of the Prometheus page; 0 switches it off")
    grace_seconds: float = Field(10.0, ge=0, le=3600, description="Seconds that open calls get when stopping")
    max_message_mib: int = Field(64, ge=1, le=1024, description="Largest message in MiB, sent or received")
    tls_cert_file: Path | None = Field(None, validation_alias="VIDEOTREE_TLS_CERT_FILE", description="Certificate")
    tls_key_file: Path | None = Field(None, validation_alias="VIDEOTREE_TLS_KEY_FILE", description="Its private key")
    tls_ca_file: Path | None = Field(None, validation_alias="VIDEOTREE_TLS_CA_FILE", description="CA of the clients")
    token_file: Path | None = Field(None, validation_alias="VIDEOTREE_TOKEN_FILE", description="File of the token")
    log_format: Literal["auto", "json", "console"] = Field(
        "auto", description="JSON unless standard error is a terminal"
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="Least level that is logged")

    @field_validator("port", "metrics_port")
    @classmethod
    def _in_range(cls, port: int) -> int:
        # A validator, not a bound of the field: subclasses declare the fields anew with their defaults.
        if not 0 <= port <= _HIGHEST_PORT:
            raise ValueError(f"Input should be between 0 and {_HIGHEST_PORT}")
        return port


T = TypeVar("T", bound=Section)


def load_section(model: type[T], section: str, overrides: Mapping[str, object] | None = None) -> T:
    """The values of `section` as a `model`.

    `overrides` are command-line values; those that are None count as not given. Raises ConfigError on an unknown key
    or variable, a wrong type, a value out of range, an unreadable file.
    """
    path = _config_path()
    tables = _read_tables(path)
    settings: dict[str, Setting] = {}
    shared = tables.get(SHARED_SECTION, {})
    _refuse_unshared_keys(shared, path)
    settings |= _from_table(model, {k: v for k, v in shared.items() if _key_of(model, k)}, path, SHARED_SECTION)
    if section != SHARED_SECTION:
        settings |= _from_table(model, tables.get(section, {}), path, section)
    settings |= _from_environment(model, section)
    settings |= {k: Setting(v, _ORIGINS["override"]) for k, v in (overrides or {}).items() if v is not None}
    return _validated(model, section, settings, path)


def secret_from_file(path: Path | str, key: str) -> SecretStr:
    """The secret that the file holds, without white space around it; `key` is named in the ConfigError on failure."""
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{key}: can't read the secret file {path}: {_reason(error)}") from error
    if not text:
        raise ConfigError(f"{key}: the secret file {path} is empty; put the secret on its first line")
    remember_secret(text)
    return SecretStr(text)


def _config_path() -> Path:
    return Path(os.environ.get(CONFIG_VARIABLE) or CONFIG_FILE)


def _read_tables(path: Path) -> dict[str, dict[str, Any]]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if CONFIG_VARIABLE in os.environ:
            raise ConfigError(f"{CONFIG_VARIABLE} names {path}, which doesn't exist; unset it or create it") from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: can't be read as TOML: {_reason(error)}") from error
    for name, table in tables.items():
        if name not in SECTIONS:
            raise ConfigError(f"{path}: unknown section [{name}]{_suggestion(name, SECTIONS)}")
        if not isinstance(table, dict):
            raise ConfigError(f"{path}: {name} must be a section, written as [{name}]")
    return tables


def _refuse_unshared_keys(shared: Mapping[str, Any], path: Path) -> None:
    """Each process reads its part of `[runtime]`; what none of them knows is a mistake."""
    for key in shared:
        if key not in ServingConfig.model_fields:
            known = ServingConfig.model_fields
            raise ConfigError(f"{path} [{SHARED_SECTION}]: unknown key {key}{_suggestion(key, known)}")


def _from_table(model: type[Section], table: Mapping[str, Any], path: Path, section: str) -> dict[str, Setting]:
    source = f"{path} [{section}]"
    found: dict[str, Setting] = {}
    for key, value in table.items():
        name = _key_of(model, key)
        if name is None:
            raise ConfigError(f"{source}: unknown key {key}{_suggestion(key, model.model_fields)}")
        if name != key:
            found[name] = Setting(secret_from_file(path.parent / str(value), f"{source} {key}"), f"{source} {key}")
        elif _is_secret(model.model_fields[name]):
            raise ConfigError(
                f"{source}: {key} is a secret and doesn't belong into this file; "
                f"set {_variables(model, section, name)[0]} or name a file with {key}_file"
            )
        else:
            found[name] = Setting(value, source)
    return found


def _key_of(model: type[Section], key: str) -> str | None:
    """The field that `key` of a file sets: itself, or the secret whose file it names."""
    if key in model.model_fields:
        return key
    name = key.removesuffix("_file")
    field = model.model_fields.get(name)
    return name if name != key and field is not None and _is_secret(field) else None


def _from_environment(model: type[Section], section: str) -> dict[str, Setting]:
    decoder = EnvSettingsSource(model)
    found: dict[str, Setting] = {}
    for name, field in model.model_fields.items():
        for variable in _variables(model, section, name):
            setting = _from_variable(decoder, name, field, variable)
            if setting is None:
                continue
            found.setdefault(name, setting)
    _refuse_unknown_variables(model, section)
    return found


def _from_variable(decoder: EnvSettingsSource, name: str, field: FieldInfo, variable: str) -> Setting | None:
    # Compose files can't leave a variable out, only empty; an empty one counts as not set.
    raw = os.environ.get(variable) or None
    if _is_secret(field) and os.environ.get(f"{variable}_FILE"):
        if raw is not None:
            raise ConfigError(f"{variable} and {variable}_FILE are both set; unset one of them")
        return Setting(secret_from_file(os.environ[f"{variable}_FILE"], f"{variable}_FILE"), f"{variable}_FILE")
    if raw is None:
        return None
    try:
        value = decoder.prepare_field_value(name, field, raw, decoder.field_is_complex(field))
    except ValueError as error:
        raise ConfigError(f"{variable}: must be JSON: {_reason(error)}") from error
    return Setting(value, variable)


def _variables(model: type[Section], section: str, name: str) -> list[str]:
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
    known = {variable for name in model.model_fields for variable in _variables(model, section, name)}
    known |= {f"{variable}_FILE" for variable in known}
    known |= {f"{shared}{name}".upper() for name in ServingConfig.model_fields}
    # VIDEOTREE_STORE_ADDRESS says to the other services where the store is; it is none of the store's own keys.
    known.add(f"{own}ADDRESS")
    for variable in sorted(os.environ):
        if variable.startswith((own, shared)) and variable not in known:
            raise ConfigError(f"unknown environment variable {variable}{_suggestion(variable, known)}")


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
            yield f"{source}: unknown key {name}{_suggestion(location[-1], model.model_fields)}"
        else:
            secret = key in model.model_fields and _is_secret(model.model_fields[key])
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
    return _variables(model, section, key)[0] if key in model.model_fields else f"VIDEOTREE_{section}_{key}".upper()


def _is_secret(field: FieldInfo) -> bool:
    return field.annotation is SecretStr or SecretStr in get_args(field.annotation)


def _remember_secrets(config: Section) -> None:
    for name in type(config).model_fields:
        value = getattr(config, name)
        if isinstance(value, SecretStr):
            remember_secret(value.get_secret_value())


def _suggestion(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else f"; known: {', '.join(sorted(known))}"


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
