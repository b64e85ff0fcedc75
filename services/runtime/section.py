"""The base models of configuration sections, and the error that names what is wrong with one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from pydantic import Field, PrivateAttr, SecretStr, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from services.runtime.redaction import remember_secret

_HIGHEST_PORT = 65535


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


def secret_from_file(path: Path | str, key: str) -> SecretStr:
    """The secret that the file holds, without white space around it; `key` is named in the ConfigError on failure."""
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{key}: can't read the secret file {path}: {reason(error)}") from error
    if not text:
        raise ConfigError(f"{key}: the secret file {path} is empty; put the secret on its first line")
    remember_secret(text)
    return SecretStr(text)


def is_secret(field: FieldInfo) -> bool:
    """Whether a field holds a secret."""
    return field.annotation is SecretStr or SecretStr in get_args(field.annotation)


def reason(error: Exception) -> str:
    """Why a file couldn't be read, without its name."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
