"""The routes of the OpenAI-compatible interface."""

from __future__ import annotations

import base64
import hashlib
import struct
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from services.simulator.domain import wire
from services.simulator.domain.draws import Draws
from services.simulator.domain.embedding import embed
from services.simulator.domain.errors import BadRequest, UnknownModel
from services.simulator.domain.faults import FAULT_HEADER, FaultPlan, plan_fault, plan_latency, read_fault_header
from services.simulator.domain.models import (
    EMBEDDING_MODEL,
    MODEL_NAMES,
    ChatCall,
    Knowledge,
    read_chat_call,
    reply_to,
    tokens,
)
from services.simulator.http_edge.delivery import Delivery

LARGEST_BODY_BYTES = 64 * 2**20
_REMEMBERED_PROMPTS = 200_000


class SimulatorServer:
    """Answers requests; keeps nothing between them but counts: of attempts per prompt (for the faults), of calls."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self._attempts: OrderedDict[bytes, int] = OrderedDict()
        self._calls: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._in_flight = 0
        self._most_in_flight = 0

    def application(self) -> web.Application:
        """The aiohttp application with all routes."""
        application = web.Application(client_max_size=LARGEST_BODY_BYTES, middlewares=[_errors_as_json])
        application.add_routes(
            [
                web.get("/v1/models", self.list_models),
                web.post("/v1/chat/completions", self.complete_chat),
                web.post("/v1/embeddings", self.create_embeddings),
                web.get("/health", self.tell_health),
                web.get("/stats", self.tell_stats),
            ]
        )
        return application

    async def list_models(self, _request: web.Request) -> web.Response:
        """`GET /v1/models`."""
        models = [
            {"id": name, "object": "model", "created": wire.CREATED, "owned_by": "simulator"} for name in MODEL_NAMES
        ]
        return _json({"object": "list", "data": models})

    async def tell_health(self, _request: web.Request) -> web.Response:
        """`GET /health`."""
        return _json({"status": "ok"})

    async def tell_stats(self, _request: web.Request) -> web.Response:
        """`GET /stats`: calls by model, faults by kind, requests in flight now and at most."""
        return _json(
            {
                "calls": dict(self._calls),
                "faults": dict(self._faults),
                "in_flight": self._in_flight,
                "most_in_flight": self._most_in_flight,
            }
        )

    async def complete_chat(self, request: web.Request) -> web.StreamResponse:
        """`POST /v1/chat/completions`."""
        call = read_chat_call(await _body(request))
        self._calls[call.model] += 1
        self._in_flight += 1
        self._most_in_flight = max(self._most_in_flight, self._in_flight)
        try:
            return await self._delivery(request, call).send()
        finally:
            self._in_flight -= 1

    def _delivery(self, request: web.Request, call: ChatCall) -> Delivery:
        world = self._knowledge.world
        reply = reply_to(call, self._knowledge)
        prompt = hashlib.blake2b(orjson.dumps([call.model, call.seed, call.messages]), digest_size=16).digest()
        draws = Draws(world.seed, "wire", prompt.hex())
        fault = self._fault(request, call, prompt, draws)
        if fault.kind:
            self._faults[fault.kind] += 1
        return Delivery(request, call, reply, fault, plan_latency(world.latency, draws, reply.is_right))

    def _fault(self, request: web.Request, call: ChatCall, prompt: bytes, draws: Draws) -> FaultPlan:
        faults = self._knowledge.world.faults
        asked_for = request.headers.get(FAULT_HEADER)
        if asked_for is not None:
            return read_fault_header(asked_for, faults)
        attempt = self._count_attempt(prompt) if faults.rates else 0
        return plan_fault(faults, call.model, draws, attempt)

    def _count_attempt(self, prompt: bytes) -> int:
        """How often this prompt was seen before; the longest unseen ones are forgotten."""
        attempt = self._attempts.pop(prompt, 0)
        self._attempts[prompt] = attempt + 1
        if len(self._attempts) > _REMEMBERED_PROMPTS:
            self._attempts.popitem(last=False)
        return attempt

    async def create_embeddings(self, request: web.Request) -> web.Response:
        """`POST /v1/embeddings`, as numbers or, with `encoding_format: base64`, as little-endian 32-bit floats."""
        body = await _body(request)
        if body.get("model") != EMBEDDING_MODEL:
            raise UnknownModel(f"model: {body.get('model')!r} makes no embeddings; {EMBEDDING_MODEL} does")
        texts = [body["input"]] if isinstance(body.get("input"), str) else body.get("input")
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
            raise BadRequest("input: must be a text or a list of texts")
        self._calls[EMBEDDING_MODEL] += 1
        packed = body.get("encoding_format") == "base64"
        vectors = [embed(text, self._knowledge.lexicon) for text in texts]
        rows = [
            {"object": "embedding", "index": index, "embedding": _packed(vector) if packed else vector}
            for index, vector in enumerate(vectors)
        ]
        count = sum(tokens(text) for text in texts)
        usage = {"prompt_tokens": count, "total_tokens": count}
        return _json({"object": "list", "data": rows, "model": EMBEDDING_MODEL, "usage": usage})


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        body = orjson.loads(await request.read())
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise BadRequest("the body must be a JSON object")
    return body


@web.middleware
async def _errors_as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except BadRequest as error:
        status = 404 if isinstance(error, UnknownModel) else 400
        body = wire.error_body(str(error), status, "invalid_request_error")
        return web.Response(status=status, body=body, content_type="application/json")


def _json(record: object) -> web.Response:
    return web.Response(body=orjson.dumps(record), content_type="application/json")


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
