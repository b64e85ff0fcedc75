"""QUA-14: planted keys show in nothing that is written, and no name leads out of the data root.

    python -m bench.secrets [--quick]

A small training of the bundled sample by real processes: a key in the environment, one in a file, a bearer token in a
file, a password in Redis's URL. Between inference and the simulated model stands an upstream that fails now and then
and repeats the key that it was called with; afterwards it fails every call, once in each way, and also gives the key as
its answer. Commands run that show settings, reports, exports and backups, and some that fail over a key. Then every
byte below the working folder is searched (data root, caches, logs, output of every command, exports, backups), every
value of every database row, the metrics of every service, all of Redis and every error that a client got: for each
secret as it is, its first 14 characters, and in base64, hexadecimal, percent-encoded and UTF-16. The search is tried
before on files and rows in which the secrets are hidden. Last, names that lead out of a folder are given to every
request of the store and to every command that takes one: all must be refused, and nothing outside may change.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import redis.asyncio
from videotree.inference.v1 import agent_pb2, chat_pb2
from videotree.inference.v1 import agent_service_pb2 as agent
from videotree.inference.v1 import agent_service_pb2_grpc as agent_stubs
from videotree.inference.v1 import model_service_pb2 as model
from videotree.inference.v1 import model_service_pb2_grpc as model_stubs

from bench.any_request import TRAVERSALS
from bench.children import ROOT, RedisServer, python_child, redis_server, simulator, until_listening
from bench.echoing_upstream import ALL, EchoingUpstream, echoing_upstream
from bench.planted import Search, controls_missed
from bench.record import Figure, at_least, at_most, shown, table, write
from bench.traversals import (
    REFUSED,
    SECRET,
    commands_with,
    is_refusal,
    outside,
    plant_outside,
    refusal_of,
    requests_with,
    working_folder,
)
from services.questions import parse_question_lines
from services.runtime.bundled import bundled_path
from services.runtime.channels import ClientCredentials, open_channel
from services.runtime.testing import free_port
from services.trainer.adapters.embedded_stack import SERVICES

SECRETS: Mapping[str, str] = {
    "key of the environment": "sk-planted/environment+7c21f9==",
    "key of a file": "sk-planted/file?03be88&more",
    "bearer token": "token-planted/51ad60~x",
    "password of Redis": "redis/planted:94c1@e7",
}
RUN = "small"
_ROLES = {"agent": chat_pb2.ROLE_AGENT, "judge": chat_pb2.ROLE_JUDGE}
_KEY_FILE, _TOKEN_FILE, _OTHER_TOKEN_FILE = "judge-key", "token", "other-token"
_EVERY = 25
_SETTINGS = {
    "VIDEOTREE_TRAINER_GATE_N_MAX": "10", "VIDEOTREE_TRAINER_HOLDOUT_TEST": "false",
    "VIDEOTREE_RUNTIME_LOG_LEVEL": "DEBUG", "VIDEOTREE_INFERENCE_SEED_FROM_SALT": "true",
    "VIDEOTREE_INFERENCE_RETRY_BASE_SECONDS": "0.01", "VIDEOTREE_INFERENCE_COOLDOWN_SECONDS": "0.05",
    "VIDEOTREE_INFERENCE_PATIENCE_SECONDS": "5",
}  # fmt: skip
_BAD_ARGUMENTS = ("../../escape", "/etc/passwd", "..")
_SHOWN = 20


@dataclass(slots=True)
class Found:
    """What was done and what was found; `broken` are broken promises in words."""

    search: Search
    controls: int = 0
    commands: int = 0
    echoed: int = 0
    attempts: int = 0
    broken: list[str] = field(default_factory=list)
    followed: list[str] = field(default_factory=list)
    changed_outside: list[str] = field(default_factory=list)
    with_redis: bool = False
    names: list[str] = field(default_factory=list)

    @property
    def all_broken(self) -> list[str]:
        """Everything that should not be."""
        return [
            *self.search.found,
            *self.broken,
            *self.followed,
            *(f"changed: {each}" for each in self.changed_outside),
        ]


class Place:
    """The folders of one run: planted secrets, logs (the working folder of every process), data root, cache."""

    def __init__(self, folder: Path) -> None:
        self.planted = folder / "planted"
        self.logs = folder / "logs"
        self.data = folder / "top" / "outer" / "data"
        self.cache = folder / "cache"
        for each in (self.planted, self.logs, self.data.parent):
            each.mkdir(parents=True)
        (self.planted / _KEY_FILE).write_text(SECRETS["key of a file"] + "\n")
        (self.planted / _TOKEN_FILE).write_text(SECRETS["bearer token"] + "\n")
        (self.planted / _OTHER_TOKEN_FILE).write_text(SECRETS["bearer token"][::-1] + "\n")
        plant_outside(self.data)

    def environment(self, ports: Mapping[str, int], model_port: int, redis_url: str) -> dict[str, str]:
        """Keys, token and password planted, and everything that a training needs."""
        models = {f"{role}_LLM_MODEL": f"sim-{role.lower()}" for role in ("JUDGE", "EVOLVE", "TOOL", "VISION")}
        addresses = {f"VIDEOTREE_{name.upper()}_ADDRESS": f"127.0.0.1:{port}" for name, port in ports.items()}
        return {
            **_SETTINGS, **models, **addresses, **({"REDIS_URL": redis_url} if redis_url else {}),
            "LLM_MODEL": "sim-agent", "LLM_BASE_URL": f"http://127.0.0.1:{model_port}/v1",
            "LLM_API_KEY": SECRETS["key of the environment"],
            "JUDGE_LLM_API_KEY_FILE": str(self.planted / _KEY_FILE),
            "VIDEOTREE_TOKEN_FILE": str(self.planted / _TOKEN_FILE),
            "VIDEOTREE_DATA": str(self.data), "VIDEOTREE_CACHE_DIR": str(self.cache),
        }  # fmt: skip


async def try_everything(folder: Path, *, names: Sequence[str] = TRAVERSALS) -> Found:
    """Trains, fails, shows, and looks for the secrets; then tries these names that lead out of the data root."""
    place, found = Place(folder), Found(Search(SECRETS))
    found.controls, missed = controls_missed(SECRETS, folder / "controls")
    shutil.rmtree(folder / "controls")
    found.broken += [f"the search does not find the {each}" for each in missed]
    ports, pages = ({name: free_port() for name in SERVICES} for _ in range(2))
    async with contextlib.AsyncExitStack() as stack:
        world = (bundled_path("examples") / "sample" / "world.toml").read_text(encoding="utf-8")
        sample = bundled_path("examples") / "sample" / "questions.jsonl"
        shutil.copy(sample, place.logs)  # a world names its answers beside it
        simulated = await stack.enter_async_context(simulator(place.logs, world))
        upstream, port = await stack.enter_async_context(echoing_upstream(simulated.port, _EVERY))
        server = await stack.enter_async_context(_redis(place.logs))
        environment = place.environment(ports, port, server.url if server else "")
        for name in SERVICES:
            arguments = ("--port", str(ports[name]), "--metrics-port", str(pages[name]))
            child = python_child(f"services.{name}.main", *arguments, folder=place.logs, environment=environment)
            await stack.enter_async_context(child)
        for each in (*ports.values(), *pages.values()):
            await until_listening(each)
        await _commands(place, environment, found)
        credentials = ClientCredentials(token_file=place.planted / _TOKEN_FILE)
        async with open_channel(f"127.0.0.1:{ports['inference']}", credentials) as channel:
            await _failures(channel, upstream, found)
        for name, page in pages.items():
            found.search.text(f"metrics of {name}", await asyncio.to_thread(_page, page))
        if server:
            found.with_redis = True
            await _search_redis(server, found.search)
        async with open_channel(f"127.0.0.1:{ports['store']}", credentials) as channel:
            await _traversals(channel, place, environment, found, names)
    found.echoed = upstream.echoed.total()
    expected = {SECRETS["key of the environment"], SECRETS["key of a file"]}
    if not expected <= upstream.keys:
        found.broken.append("the upstream was not called with both keys")
    # What was planted is no find; everything else is searched, once all processes have written their last line.
    shutil.rmtree(place.planted)
    found.names = await asyncio.to_thread(lambda: sorted(path.name for path in folder.rglob("*")))
    await asyncio.to_thread(found.search.folder, folder)
    return found


@contextlib.asynccontextmanager
async def _redis(folder: Path) -> AsyncIterator[RedisServer | None]:
    if not shutil.which("redis-server"):
        yield None
        return
    async with redis_server(folder, SECRETS["password of Redis"]) as server:
        yield server


async def _commands(place: Place, environment: Mapping[str, str], found: Found) -> None:
    """Commands that write or show something, then some that fail over a secret; what they say is in the logs."""
    plain = {name: value for name, value in environment.items() if name != "JUDGE_LLM_API_KEY_FILE"}
    both = {**environment, "JUDGE_LLM_API_KEY": SECRETS["key of a file"]}
    away = {**environment, "VIDEOTREE_STORE_ADDRESS": f"127.0.0.1:{free_port()}"}
    wrong_token = {**environment, "VIDEOTREE_TOKEN_FILE": str(place.planted / _OTHER_TOKEN_FILE)}
    broken_key = {**plain, "LLM_API_KEY": f"{SECRETS['key of the environment']}\nsecond line"}
    no_url = {**environment, "REDIS_URL": SECRETS["password of Redis"]}
    trainer, inference = "services.trainer.main", "services.inference.main"
    train = ("train", "--demo", "--run-id", RUN, "--steps", "1", "--batch-size", "16")
    space = ("--workspace", RUN)
    wanted: list[tuple[str, tuple[str, ...], Mapping[str, str], bool]] = [
        (trainer, train, environment, True),
        *((trainer, command, environment, True) for command in (
            ("report", RUN), ("runs", *space), ("plan", *space), ("export", "exported", *space), ("config", "show"),
            ("backup", "copy", *space), ("restore", "copy", "restored"), ("models",), ("cache", "stats"),
            ("seed", "list"), ("gate", "simulate"), ("doctor",))),
        (inference, ("--show-config",), environment, True),
        (trainer, ("--debug", "runs"), away, False),
        (trainer, ("--debug", "runs"), wrong_token, False),
        (inference, (), broken_key, False),
        (inference, (), both, False),
        (inference, (), no_url, False),
    ]  # fmt: skip
    for module, arguments, variables, succeeds in wanted:
        async with python_child(module, *arguments, folder=place.logs, environment=variables) as process:
            code = await asyncio.wait_for(process.wait(), 600)
        found.commands += 1
        if (code == 0) is not succeeds:
            found.broken.append(f"{module} {' '.join(arguments)} ended with code {code}")


async def _failures(channel: grpc.aio.Channel, upstream: EchoingUpstream, found: Found) -> None:
    """Every call fails, once in each way, as a chat, a stream and an agent's question; errors are searched."""
    models, questions = model_stubs.ModelServiceStub(channel), agent_stubs.AgentServiceStub(channel)
    sample = parse_question_lines((bundled_path("examples") / "sample" / "questions.jsonl").read_bytes()).questions
    for number, kind in enumerate(ALL):
        upstream.always = kind
        for role, value in _ROLES.items():
            message = chat_pb2.Message(role="user", parts=[chat_pb2.ContentPart(text=f"{kind}?")])
            call = chat_pb2.ChatCall(role=value, messages=[message], workspace=RUN, run_id="fails")
            chat, stream = model.ChatRequest(call=call), model.StreamChatRequest(call=call)
            await _refused(models.Chat(chat, timeout=60), f"chat as {role}: {kind}", found)
            await _refused(_drained(models.StreamChat(stream, timeout=60)), f"stream as {role}: {kind}", found)
        request = agent.AnswerQuestionsRequest(
            workspace=RUN, dataset="sample", question_ids=[sample[number].question_id], prompts_version="v1",
            skills=agent_pb2.SkillSet(version="v1"), run_id=f"fails-{number}", solver=agent_pb2.SOLVER_DIRECT,
        )  # fmt: skip
        answers = await _drained(questions.AnswerQuestions(request, timeout=120))
        found.search.text(f"answers while every call fails: {kind}", str(answers))
        for endpoint in (await models.ListEndpoints(model.ListEndpointsRequest())).endpoints:
            found.search.text("endpoints", str(endpoint))
            await models.ResetBreaker(model.ResetBreakerRequest(endpoint=endpoint.name))
    upstream.always = ""


async def _refused(call: Any, what: str, found: Found) -> None:
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        found.search.text(f"error of a {what}", f"{error.details()} {error.trailing_metadata()} {error}")
    else:
        found.broken.append(f"a {what} was answered: {answer}")


async def _drained(stream: Any) -> list[Any]:
    return [message async for message in stream]


async def _search_redis(server: RedisServer, search: Search) -> None:
    async with redis.asyncio.Redis(port=server.port, password=SECRETS["password of Redis"]) as client:
        async for key in client.scan_iter("*", count=500):
            stored = await client.get(key)
            search.text("Redis", bytes(key) + b"\n" + (stored if isinstance(stored, bytes) else b""))


async def _traversals(
    channel: grpc.aio.Channel, place: Place, environment: Mapping[str, str], found: Found, names: Sequence[str]
) -> None:
    before = outside(place.data)
    for bad in names:
        for request in requests_with(bad, RUN):
            found.attempts += 1
            code, text = await refusal_of(channel, request)
            if code not in REFUSED or SECRET in text:
                found.followed.append(f"{type(request).__name__} with {bad!r}: {code.name} {text[:200]}")
    commands = [command for bad in _BAD_ARGUMENTS for command in commands_with(bad, RUN)]
    outcomes = await asyncio.to_thread(_outcomes, commands, environment, working_folder(place.data))
    for command, (exit_code, output) in zip(commands, outcomes, strict=True):
        found.attempts += 1
        found.search.text(f"output of {command[0]}", output)
        if not is_refusal(exit_code, output):
            found.followed.append(f"videotree {' '.join(command)}: exit code {exit_code}: {output[-300:]}")
    after = outside(place.data)
    found.changed_outside += [str(path) for path in {*before, *after} if before.get(path) != after.get(path)]


def _outcomes(commands: Sequence[Sequence[str]], environment: Mapping[str, str], folder: Path) -> list[tuple[int, str]]:
    paths = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "gen"))), "VIDEOTREE_CONFIG": os.devnull}
    ended = subprocess.run(
        [sys.executable, "-m", "bench.traversals"], cwd=folder, env={**os.environ, **environment, **paths},
        input=json.dumps(commands), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [(code, output) for code, output in json.loads(ended.stdout)]


def _page(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        text: str = page.read().decode()
        return text


def figures_of(found: Found, seconds: float) -> list[Figure]:
    """The rows of the table."""
    search = found.search
    return [
        shown(
            f"places searched for {len(SECRETS)} secrets, {search.rows:,} database rows among them", search.places, ""
        ),
        shown("searched", search.size_bytes / 2**20, "MiB"),
        at_most("secrets found", len(search.found), "", 0),
        at_least("secrets hidden to try the search, and found", found.controls, "", found.controls),
        shown("failures in which the upstream repeated a key", found.echoed, ""),
        shown("commands", found.commands, ""),
        at_most("other broken promises", len(found.broken), "", 0),
        shown("names that lead out of the data root: attempts", found.attempts, ""),
        at_most("of these not refused", len(found.followed), "", 0),
        at_most("files outside the data root that changed", len(found.changed_outside), "", 0),
        shown("duration", seconds, "s"),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs it; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two names that lead out, not seven")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="secrets-") as folder:
        names = TRAVERSALS[:2] if options.quick else TRAVERSALS
        found = asyncio.run(try_everything(Path(folder), names=names))
    figures = figures_of(found, time.monotonic() - began)
    print(table(figures))
    if not found.with_redis:
        print("no redis-server on PATH: its password was not planted")
    write("secrets", __doc__ or "", figures, {"with_redis": found.with_redis, "broken": found.all_broken[:100]})
    for line in found.all_broken[:_SHOWN]:
        print(line, file=sys.stderr)
    return 1 if found.all_broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
