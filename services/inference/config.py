"""The `[inference]` section: endpoints of each role, the response cache, retries and breakers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, field_validator

from services.inference.domain.chat import Role
from services.inference.domain.endpoint import Endpoint, Timeouts
from services.inference.domain.upstream_body import RESERVED_PARAMETERS
from services.inference.use_cases.answer_setup import ResponseFormat
from services.runtime.config import ConfigError, ServingConfig, secret_from_file
from services.runtime.redaction import remember_secret

DEFAULT_TTL_SECONDS = 604_800
_MAX_TTL_SECONDS = 10 * 365 * 86_400


def _whole_seconds(value: object) -> int:
    """A positive whole number, from a TOML integer or a text of digits; nothing that merely could pass for one."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,12}", value.strip()):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _MAX_TTL_SECONDS:
        raise ValueError(f"must be a positive whole number of seconds, at most {_MAX_TTL_SECONDS} (ten years)")
    return value


def _base_url(value: object) -> str:
    """An http or https URL without user, query or final slash, such as `http://127.0.0.1:8000/v1`."""
    parts = urlsplit(str(value).strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an http or https URL such as http://127.0.0.1:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("must hold no user, password, query or fragment; the key goes into LLM_API_KEY")
    return str(value).strip().rstrip("/")


WholeSeconds = Annotated[int, BeforeValidator(_whole_seconds)]
BaseUrl = Annotated[str, BeforeValidator(_base_url)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


class EndpointSettings(BaseModel):
    """One `[[inference.endpoints]]` table."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    name: str = Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9._-]+$")
    roles: tuple[Role, ...] = Field(min_length=1)
    base_url: BaseUrl
    model: str = Field(min_length=1)
    api_key_env: str | None = None
    api_key_file: Path | None = None
    concurrency_limit: int = Field(32, ge=1, le=4096)
    connect_timeout_seconds: Seconds = 5.0
    first_token_timeout_seconds: Seconds = 120.0
    between_tokens_timeout_seconds: Seconds = 60.0
    total_timeout_seconds: Seconds = 600.0
    parameters: dict[str, Any] = Field(default_factory=dict)

    @field_validator("parameters")
    @classmethod
    def _no_reserved_parameters(cls, value: dict[str, Any]) -> dict[str, Any]:
        taken = sorted(RESERVED_PARAMETERS & value.keys())
        if taken:
            raise ValueError(f"{', '.join(taken)} can't be set as a parameter")
        return value


_MEANINGS = {"BASE_URL": "Base URL, such as http://127.0.0.1:8000/v1", "MODEL": "Model name", "API_KEY": "Key"}


def _alias(name: str) -> Any:
    """A field that is set by this variable: of one role, or of every chat role."""
    role, _, part = name.partition("LLM_")
    of = f"of the role {role.rstrip('_').lower()}" if role else "of every chat role that has none of its own"
    return Field(None, validation_alias=name, description=f"{_MEANINGS[part]} {of}")


class InferenceConfig(ServingConfig):
    """All keys of `[inference]`.

    Which endpoints serve a role, the first rule that applies: `<ROLE>_LLM_*` variables; `[[inference.endpoints]]`
    tables that list the role, in their order; `LLM_*` variables (every role but `embed`, which no chat model serves:
    it needs `EMBED_LLM_MODEL`). What a `<ROLE>_LLM_*` variable leaves out comes from `LLM_*`, the key only where the
    base URL is the same.
    """

    port: int = Field(50052, ge=0, le=65535, description="gRPC port; 0 takes a free one")
    metrics_port: int = Field(9052, ge=0, le=65535, description="Port of the Prometheus page; 0 switches it off")
    store_address: str = Field("127.0.0.1:50051", validation_alias="VIDEOTREE_STORE_ADDRESS", description="The store")

    endpoints: tuple[EndpointSettings, ...] = Field((), description="Endpoints, in the order they are tried")
    concurrency_limit: int = Field(32, ge=1, le=4096, description="Calls in flight of an endpoint from LLM_*")
    connect_timeout_seconds: Seconds = Field(5.0, description="Until the connection stands")
    first_token_timeout_seconds: Seconds = Field(120.0, description="Until the first token")
    between_tokens_timeout_seconds: Seconds = Field(60.0, description="Largest gap between tokens")
    total_timeout_seconds: Seconds = Field(600.0, description="One attempt as a whole")
    parameters: dict[str, Any] = Field(default_factory=dict, description="Default parameters of endpoints from LLM_*")
    seed_from_salt: bool = Field(False, description="Derive each request's seed from its salt")

    agent_concurrency: int = Field(16, ge=1, le=4096, description="Questions at once where a call sets no limit")
    condense_above_chars: int = Field(2000, ge=1, description="Tool texts longer than this are condensed")
    agent_response_format: ResponseFormat = Field(
        ResponseFormat.NONE, description="What the endpoint enforces on replies: none, json_object or json_schema"
    )
    patience_seconds: float = Field(
        30.0, ge=0, le=3600, allow_inf_nan=False, description="How long agents wait for endpoints with an open breaker"
    )

    max_call_seconds: Seconds = Field(1800.0, description="Longest time of a call, retries included")
    max_request_mib: int = Field(32, ge=1, le=1024, description="Largest messages of a request, images included")
    max_attempts: int = Field(4, ge=1, le=100, description="Rounds over a role's endpoints in one call")
    retry_base_seconds: float = Field(0.5, ge=0, le=60, allow_inf_nan=False, description="Ceiling of the first wait")
    retry_cap_seconds: float = Field(20.0, ge=0, le=3600, allow_inf_nan=False, description="Ceiling of any wait")
    fail_threshold: int = Field(5, ge=1, le=1000, description="Consecutive failures that open a breaker")
    cooldown_seconds: Seconds = Field(10.0, description="How long a breaker stays open before its probe")

    redis_url: SecretStr | None = Field(None, validation_alias="REDIS_URL", description="Redis of the response cache")
    redis_cache_ttl: WholeSeconds = Field(
        DEFAULT_TTL_SECONDS, validation_alias="REDIS_CACHE_TTL", description="Life of a cached response in seconds"
    )
    cache_dir: Path = Field(
        Path(".videotree/cache"), validation_alias="VIDEOTREE_CACHE_DIR", description="Disk cache where no Redis is set"
    )
    cache_max_mib: int = Field(2048, ge=64, le=1_048_576, description="Bound of the disk cache")

    llm_base_url: BaseUrl | None = _alias("LLM_BASE_URL")
    llm_model: str | None = _alias("LLM_MODEL")
    llm_api_key: SecretStr | None = _alias("LLM_API_KEY")
    agent_llm_base_url: BaseUrl | None = _alias("AGENT_LLM_BASE_URL")
    agent_llm_model: str | None = _alias("AGENT_LLM_MODEL")
    agent_llm_api_key: SecretStr | None = _alias("AGENT_LLM_API_KEY")
    tool_llm_base_url: BaseUrl | None = _alias("TOOL_LLM_BASE_URL")
    tool_llm_model: str | None = _alias("TOOL_LLM_MODEL")
    tool_llm_api_key: SecretStr | None = _alias("TOOL_LLM_API_KEY")
    vision_llm_base_url: BaseUrl | None = _alias("VISION_LLM_BASE_URL")
    vision_llm_model: str | None = _alias("VISION_LLM_MODEL")
    vision_llm_api_key: SecretStr | None = _alias("VISION_LLM_API_KEY")
    judge_llm_base_url: BaseUrl | None = _alias("JUDGE_LLM_BASE_URL")
    judge_llm_model: str | None = _alias("JUDGE_LLM_MODEL")
    judge_llm_api_key: SecretStr | None = _alias("JUDGE_LLM_API_KEY")
    evolve_llm_base_url: BaseUrl | None = _alias("EVOLVE_LLM_BASE_URL")
    evolve_llm_model: str | None = _alias("EVOLVE_LLM_MODEL")
    evolve_llm_api_key: SecretStr | None = _alias("EVOLVE_LLM_API_KEY")
    embed_llm_base_url: BaseUrl | None = _alias("EMBED_LLM_BASE_URL")
    embed_llm_model: str | None = _alias("EMBED_LLM_MODEL")
    embed_llm_api_key: SecretStr | None = _alias("EMBED_LLM_API_KEY")


def endpoints_of(config: InferenceConfig) -> dict[Role, list[Endpoint]]:
    """The endpoints of each role in the order they are tried; equal ones are one object, with one breaker.

    Raises ConfigError naming what is missing.
    """
    listed = _listed_endpoints(config)
    by_role: dict[Role, list[Endpoint]] = {}
    from_variables: dict[tuple[str, str, str | None], list[Role]] = {}
    for role in Role:
        served = None if _has_own_variables(config, role) else [e for e in listed if role in e.roles]
        if served:
            by_role[role] = served
        elif (target := _variable_target(config, role)) is not None:
            from_variables.setdefault(target, []).append(role)
    for endpoint in _variable_endpoints(config, from_variables):
        for role in endpoint.roles:
            by_role[role] = [endpoint]
    return by_role


def _listed_endpoints(config: InferenceConfig) -> list[Endpoint]:
    names = [settings.name for settings in config.endpoints]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"[inference] endpoints: the name {twice[0]} is used twice; give each endpoint its own")
    return [_listed_endpoint(settings) for settings in config.endpoints]


def _listed_endpoint(settings: EndpointSettings) -> Endpoint:
    return Endpoint(
        name=settings.name,
        roles=frozenset(settings.roles),
        base_url=settings.base_url,
        model=settings.model,
        api_key=_listed_key(settings),
        concurrency_limit=settings.concurrency_limit,
        timeouts=_timeouts(settings),
        parameters=settings.parameters,
    )


def _listed_key(settings: EndpointSettings) -> str | None:
    where = f"[inference] endpoint {settings.name}"
    if settings.api_key_env and settings.api_key_file:
        raise ConfigError(f"{where}: api_key_env and api_key_file are both set; remove one of them")
    if settings.api_key_file:
        return _header_safe(secret_from_file(settings.api_key_file, where).get_secret_value(), f"{where} api_key_file")
    if not settings.api_key_env:
        return None
    key = os.environ.get(settings.api_key_env, "").strip()
    if not key:
        raise ConfigError(f"{where}: the variable {settings.api_key_env} holds no key; set it or remove api_key_env")
    remember_secret(key)
    return _header_safe(key, settings.api_key_env)


def _header_safe(key: str, source: str) -> str:
    """The key, if a header can carry it. Raises ConfigError, which doesn't show it."""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(f"{source}: the key holds spaces, line breaks or characters that no HTTP header can carry")
    return key


def _has_own_variables(config: InferenceConfig, role: Role) -> bool:
    return any(getattr(config, f"{role}_llm_{part}") for part in ("base_url", "model", "api_key"))


def _variable_target(config: InferenceConfig, role: Role) -> tuple[str, str, str | None] | None:
    """Base URL, model and key that variables give the role, or None when they don't serve it."""
    if not _has_own_variables(config, role) and (role is Role.EMBED or not (config.llm_base_url or config.llm_model)):
        return None
    base_url: str | None = getattr(config, f"{role}_llm_base_url") or config.llm_base_url
    model: str | None = getattr(config, f"{role}_llm_model") or config.llm_model
    if not base_url or not model:
        missing = "base URL" if not base_url else "model"
        variable = "LLM_BASE_URL" if not base_url else "LLM_MODEL"
        raise ConfigError(f"the role {role} has no {missing}; set {role.upper()}_{variable} or {variable}")
    key: SecretStr | None = getattr(config, f"{role}_llm_api_key")
    if key is None and base_url == config.llm_base_url:
        key = config.llm_api_key
    text = "" if key is None else key.get_secret_value().strip()
    return base_url, model, _header_safe(text, f"{role.upper()}_LLM_API_KEY or LLM_API_KEY") if text else None


def _variable_endpoints(
    config: InferenceConfig, targets: dict[tuple[str, str, str | None], list[Role]]
) -> Iterator[Endpoint]:
    taken = {settings.name for settings in config.endpoints}
    for (base_url, model, key), roles in targets.items():
        shared = not any(_has_own_variables(config, role) for role in roles)
        name = "llm" if shared else f"{'-'.join(roles)}-llm"
        if name in taken:
            raise ConfigError(f"[inference] endpoints: the name {name} is kept for variables; choose another")
        yield Endpoint(
            name=name,
            roles=frozenset(roles),
            base_url=base_url,
            model=model,
            api_key=key,
            concurrency_limit=config.concurrency_limit,
            timeouts=_timeouts(config),
            parameters=config.parameters,
        )


def _timeouts(settings: EndpointSettings | InferenceConfig) -> Timeouts:
    return Timeouts(
        connect=settings.connect_timeout_seconds,
        first_token=settings.first_token_timeout_seconds,
        between_tokens=settings.between_tokens_timeout_seconds,
        total=settings.total_timeout_seconds,
    )
