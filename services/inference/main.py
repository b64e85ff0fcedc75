"""The inference service's composition root: config, adapters, use cases, servicers, in that order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import grpc
from videotree.inference.v1 import agent_service_pb2, agent_service_pb2_grpc, model_service_pb2, model_service_pb2_grpc
from videotree.store.v1 import run_service_pb2_grpc

from services.inference.adapters.aiohttp_upstream import AiohttpUpstream
from services.inference.adapters.call_log import StoreCallLog
from services.inference.adapters.disk_cache import DiskCache
from services.inference.adapters.endpoint_metrics import watch_endpoints
from services.inference.adapters.metrics import CALL_ROWS_DROPPED, MetricsObserver
from services.inference.adapters.redis_cache import RedisCache
from services.inference.agent_parts import agent_servicer
from services.inference.config import InferenceConfig, endpoints_of
from services.inference.domain.breaker import Breaker
from services.inference.domain.chat import Role
from services.inference.domain.endpoint import Endpoint
from services.inference.rpc.model_servicer import ModelServicer
from services.inference.rpc.status_codes import STATUS_RULES
from services.inference.use_cases.call_endpoints import RetryPolicy
from services.inference.use_cases.governed_chat import GovernedModel
from services.inference.use_cases.guarded_cache import GuardedCache
from services.inference.use_cases.guarded_endpoint import GuardedEndpoint
from services.inference.use_cases.observers import AllObservers
from services.inference.use_cases.operate import Operations
from services.inference.use_cases.ports import CallObserver, ResponseCache
from services.inference.use_cases.shared_calls import SharedCalls
from services.runtime.channels import open_channel
from services.runtime.config import ConfigError
from services.runtime.entry import service_main
from services.runtime.logging import get_logger
from services.runtime.serving import ServiceParts

_MIB = 2**20
_SERVICE_NAMES = (
    model_service_pb2.DESCRIPTOR.services_by_name["ModelService"].full_name,
    agent_service_pb2.DESCRIPTOR.services_by_name["AgentService"].full_name,
)
_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ModelParts:
    """The governed model with what operates and closes it."""

    model: GovernedModel
    operations: Operations
    close: Callable[[], Awaitable[None]]


async def build(config: InferenceConfig) -> ServiceParts:
    """Everything that the server serves. Raises ConfigError."""
    by_role = endpoints_of(config)
    if not by_role:
        raise ConfigError("no model endpoint is configured; set LLM_BASE_URL and LLM_MODEL")
    store = open_channel(config.store_address)
    call_log = StoreCallLog(run_service_pb2_grpc.RunServiceStub(store).AppendLlmCalls, CALL_ROWS_DROPPED.inc)
    parts = build_model(config, by_role, AllObservers((MetricsObserver(), call_log)))
    models = ModelServicer(parts.model, parts.operations)
    agent = agent_servicer(
        parts.model,
        store,
        condense_above_chars=config.condense_above_chars,
        default_concurrency=config.agent_concurrency,
        response_format=config.agent_response_format,
        patience_seconds=config.patience_seconds,
    )

    def register(server: grpc.aio.Server) -> None:
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(models, server)
        agent_service_pb2_grpc.add_AgentServiceServicer_to_server(agent, server)

    async def close() -> None:
        await parts.close()
        await call_log.close()
        await store.close()

    return ServiceParts(register=register, service_names=_SERVICE_NAMES, status_rules=STATUS_RULES, close=close)


def build_model(config: InferenceConfig, by_role: Mapping[Role, list[Endpoint]], observer: CallObserver) -> ModelParts:
    """The governed model over `by_role`; an endpoint of several roles has one breaker and one queue."""
    clock = asyncio.get_running_loop().time
    guarded = {
        endpoint.name: GuardedEndpoint(endpoint, Breaker(config.fail_threshold, config.cooldown_seconds), clock)
        for endpoints in by_role.values()
        for endpoint in endpoints
    }
    watch_endpoints(guarded.values())
    cache = GuardedCache(_response_cache(config), config.redis_cache_ttl, observer, _log.warning)
    policy = RetryPolicy(config.max_attempts, config.retry_base_seconds, config.retry_cap_seconds)
    calls = SharedCalls(cache, policy, observer)
    upstream = AiohttpUpstream()
    model = GovernedModel(
        {role: [guarded[endpoint.name] for endpoint in endpoints] for role, endpoints in by_role.items()},
        upstream,
        calls,
        observer,
        seed_from_salt=config.seed_from_salt,
        max_request_bytes=config.max_request_mib * _MIB,
        max_call_seconds=config.max_call_seconds,
    )

    async def close() -> None:
        await calls.close()
        await upstream.close()
        await cache.close()

    return ModelParts(model, Operations(guarded.values(), cache, config.cooldown_seconds), close)


def _response_cache(config: InferenceConfig) -> ResponseCache:
    if config.redis_url is None:
        try:
            return DiskCache(config.cache_dir, config.cache_max_mib * _MIB)
        except OSError as error:
            raise ConfigError(f"VIDEOTREE_CACHE_DIR: can't use {config.cache_dir}: {error.strerror or error}") from None
    try:
        return RedisCache(config.redis_url.get_secret_value())
    except ValueError as error:
        raise ConfigError(f"REDIS_URL: {error}; write it as redis://[:password@]host:port/0") from None


def main() -> int:
    """Serve until stopped; the exit code."""
    return service_main("inference", InferenceConfig, build)


if __name__ == "__main__":
    raise SystemExit(main())
