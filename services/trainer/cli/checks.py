"""`videotree doctor`, `models` and `cache`: what is there, and how it does."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from services.runtime.bundled import bundled_path
from services.trainer.adapters.bundled_files import read_prompts
from services.trainer.adapters.embedded_stack import SERVICES, is_serving
from services.trainer.cli import options
from services.trainer.cli.output import print_json, print_line, print_rows, say
from services.trainer.cli.running import EXIT_FAILED, run_command
from services.trainer.cli.session import Session, addresses_are_set, chosen_world, load_config, open_session
from services.trainer.domain.endpoints import CacheStats, Endpoint
from services.trainer.domain.errors import TrainerError
from services.trainer.use_cases.doctor import (
    Finding,
    check_cache,
    check_data,
    check_models,
    check_services,
    check_templates,
)

cache_app = typer.Typer(help="The response cache.", no_args_is_help=True)


def doctor(
    simulated: options.Simulated = False,
    world: options.World = None,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Check services, endpoints (a real call each), cache, data and templates; exit 1 if anything fails.

    Example: videotree doctor
    """
    findings = run_command(_findings(chosen_world(simulated=simulated, world=world), data))
    if as_json:
        print_json(findings)
    else:
        for each in findings:
            print_line(f"{each.status:4}  {each.name:22}  {each.detail}")
            if each.fix:
                print_line(f"      {'':22}  fix: {each.fix}")
    if any(each.status == "FAIL" for each in findings):
        raise typer.Exit(EXIT_FAILED)


def models(
    reset: Annotated[str | None, typer.Option("--reset", help="Close this endpoint's breaker.")] = None,
    force_open: Annotated[str | None, typer.Option("--open", help="Open this endpoint's breaker.")] = None,
    simulated: options.Simulated = False,
    world: options.World = None,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the endpoints and their breakers.

    Example: videotree models --reset agent-llm
    """

    async def work() -> tuple[Endpoint, ...]:
        async with open_session(
            load_config(), data=data, world=chosen_world(simulated=simulated, world=world), needs=("inference",)
        ) as session:
            if reset:
                await session.services.models.reset_breaker(reset)
            if force_open:
                await session.services.models.open_breaker(force_open)
            return await session.services.models.endpoints()

    endpoints = run_command(work())
    if as_json:
        print_json(endpoints)
        return
    rows = [
        {
            "endpoint": each.name,
            "model": each.model,
            "url": each.base_url,
            "roles": each.roles,
            "breaker": _breaker(each),
            "failures": each.consecutive_failures,
            "in flight": f"{each.in_flight}/{each.concurrency_limit}",
            "waiting": each.waiting,
            "attempts": each.attempt_count,
            "failed": each.failure_count,
            "last error": each.last_error or "none",
        }
        for each in endpoints
    ]
    print_rows(rows, as_json=False, empty="no endpoint is configured; set LLM_BASE_URL and LLM_MODEL")


def _breaker(endpoint: Endpoint) -> str:
    """The state of its breaker, and of an open one the time until it may be tried."""
    wait = endpoint.retry_after_seconds
    return endpoint.breaker_state if wait is None else f"{endpoint.breaker_state} for {wait:.1f} s"


@cache_app.command("stats")
def cache_stats(data: options.Data = None, as_json: options.AsJson = False) -> None:
    """Show figures about the response cache.

    Example: videotree cache stats
    """

    async def work() -> CacheStats:
        async with open_session(load_config(), data=data, needs=("inference",)) as session:
            return await session.services.models.cache_stats()

    stats = run_command(work())
    print_rows([asdict(stats)], as_json=as_json, empty="")


@cache_app.command("extend")
def cache_extend(
    ttl: Annotated[int, typer.Option("--ttl", min=1, help="Seconds every entry shall live at least.")],
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Renew every entry whose remaining life is shorter (after raising the TTL in the middle of a training).

    Example: videotree cache extend --ttl 1209600
    """

    async def work() -> tuple[int, int]:
        async with open_session(load_config(), data=data, needs=("inference",)) as session:
            return await session.services.models.extend_cache(ttl)

    renewed, seen = run_command(work())
    say({"renewed": renewed, "entries": seen}, f"renewed {renewed} of {seen} entries", as_json=as_json)


@cache_app.command("purge")
def cache_purge(
    salt: Annotated[str | None, typer.Option("--salt", help="The salt, such as demo-1:e0.")] = None,
    unsalted: Annotated[bool, typer.Option("--unsalted", help="The entries without a salt.")] = False,
    data: options.Data = None,
    as_json: options.AsJson = False,
) -> None:
    """Remove the entries of one salt.

    Example: videotree cache purge --salt gate-base
    """
    if (salt is None) != unsalted:
        raise typer.BadParameter("give either --salt or --unsalted")

    async def work() -> int:
        async with open_session(load_config(), data=data, needs=("inference",)) as session:
            return await session.services.models.purge_cache(salt)

    purged = run_command(work())
    say({"purged": purged}, f"removed {purged} entries", as_json=as_json)


async def _findings(world: Path | None, data: Path | None) -> list[Finding]:
    templates = check_templates(lambda: read_prompts(bundled_path("prompts")))
    config = load_config()
    addresses = {name: str(getattr(config, f"{name}_address")) for name in SERVICES}
    running = await asyncio.gather(*(is_serving(address) for address in addresses.values()))
    meant = any(running) or addresses_are_set(config)
    if meant and not all(running) and world is None and data is None:
        return [*await check_services(is_serving, addresses), templates]
    try:
        async with open_session(config, data=data, world=world) as session:
            return [*await _session_findings(session), templates]
    except TrainerError as error:
        return [Finding("FAIL", "embedded stack", str(error), _mend_stack(str(error))), templates]


def _mend_stack(detail: str) -> str:
    if "LLM_BASE_URL" in detail:
        return "export LLM_BASE_URL=... LLM_MODEL=...; without a model: videotree doctor --simulated"
    if "data root" in detail:
        return "videotree doctor --data FOLDER, or export VIDEOTREE_DATA=FOLDER: a folder that you may write"
    return "videotree up, and read the logs it names"


async def _session_findings(session: Session) -> list[Finding]:
    return [
        *await check_services(is_serving, session.addresses),
        *await check_models(session.services),
        await check_cache(session.services),
        *await check_data(session.services),
    ]
