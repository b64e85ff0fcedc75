"""Is everything there that a training needs? Each finding names the command that mends it (TRN-14)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from services.trainer.domain.endpoints import Endpoint
from services.trainer.domain.errors import TrainerError
from services.trainer.use_cases.ports import Services

CHAT_ROLES = ("agent", "tool", "judge", "evolve", "vision")


@dataclass(frozen=True, slots=True)
class Finding:
    """One row: its status, what was looked at, what was seen, and the command that mends it (empty when ok)."""

    status: Literal["ok", "warn", "FAIL"]
    name: str
    detail: str
    fix: str = ""


async def check_services(is_serving: Callable[[str], Awaitable[bool]], addresses: Mapping[str, str]) -> list[Finding]:
    """One finding a service."""
    findings = []
    for name, address in addresses.items():
        if await is_serving(address):
            findings.append(Finding("ok", f"service {name}", f"serving at {address}"))
        else:
            findings.append(Finding("FAIL", f"service {name}", f"nothing healthy at {address}", "videotree up"))
    return findings


async def check_models(services: Services) -> list[Finding]:
    """A real one-token call for each role that an endpoint serves; a role without one fails, vision and embed warn."""
    try:
        endpoints = await services.models.endpoints()
    except TrainerError as error:
        return [Finding("FAIL", "endpoints", str(error), "videotree up")]
    served = {role: endpoint for endpoint in endpoints for role in endpoint.roles}
    findings = []
    for role in (*CHAT_ROLES, "embed"):
        endpoint = served.get(role)
        if endpoint is None:
            findings.append(_unserved(role))
            continue
        where = f"{endpoint.model} at {endpoint.base_url}"
        try:
            await services.models.probe(role)
        except TrainerError as error:
            fix = f"{_model_fix(role, endpoint, str(error))}, then restart the inference service"
            findings.append(Finding("FAIL", f"role {role}", f"{where}: {error}", fix))
        else:
            findings.append(Finding("ok", f"role {role}", where))
    return findings


async def check_cache(services: Services) -> Finding:
    """Whether the response cache answers, and which one it is."""
    try:
        stats = await services.models.cache_stats()
    except TrainerError as error:
        fix = "redis-cli -u $REDIS_URL ping, or unset REDIS_URL to use the disk cache"
        return Finding("warn", "response cache", f"{error}; training works without it, but repeats cost", fix)
    if stats.error_count:
        detail = f"{stats.backend}: {stats.error_count} failures since the service started"
        return Finding("warn", "response cache", detail, "redis-cli -u $REDIS_URL ping")
    return Finding("ok", "response cache", f"{stats.backend}, {stats.entry_count} entries")


async def check_data(services: Services) -> list[Finding]:
    """Question sets, their videos, workspaces and seeds."""
    try:
        datasets = await services.library.datasets()
        videos = set(await services.library.video_ids())
        findings = [Finding("ok", "data root", f"{len(videos)} videos, {len(datasets)} question sets")]
        if not datasets:
            findings.append(
                Finding(
                    "FAIL",
                    "dataset",
                    "the library holds no questions",
                    "videotree import questions FILE --dataset NAME",
                )
            )
        for dataset in datasets:
            questions = await services.library.questions(dataset.dataset)
            missing = sorted({each.video_id for each in questions if each.video_id} - videos)
            if missing:
                detail = f"{len(missing)} videos have no tree, such as {missing[0]}"
                findings.append(Finding("FAIL", f"dataset {dataset.dataset}", detail, "videotree import trees DIR"))
            else:
                findings.append(Finding("ok", f"dataset {dataset.dataset}", f"{len(questions)} questions"))
    except TrainerError as error:
        return [Finding("FAIL", "data root", str(error), "videotree up")]
    return findings


def check_templates(read: Callable[[], Mapping[str, str]]) -> Finding:
    """Whether the prompts of new workspaces are there and none is empty."""
    try:
        prompts = read()
    except (TrainerError, OSError) as error:
        return Finding("FAIL", "templates", str(error), "pip install --force-reinstall videotree")
    empty = sorted(name for name, text in prompts.items() if not text.strip())
    if empty or not prompts:
        detail = f"empty: {', '.join(empty)}" if empty else "no prompt at all"
        return Finding("FAIL", "templates", detail, "git checkout -- prompts")
    return Finding("ok", "templates", f"{len(prompts)} prompts")


def _model_fix(role: str, endpoint: Endpoint, error: str) -> str:
    """What mends an endpoint that refused or missed a call: its key, its model's name, or its server."""
    own = f"{role.upper()}_LLM"
    if "HTTP 401" in error or "HTTP 403" in error:
        return f"export LLM_API_KEY=... (or {own}_API_KEY)"
    models = f"curl {endpoint.base_url}/models"
    if "HTTP 404" in error:
        return f"{models} says what it serves; export LLM_MODEL=... (or {own}_MODEL)"
    return f"start it ({models} must answer), or export LLM_BASE_URL=... LLM_MODEL=... (or {own}_BASE_URL)"


def _unserved(role: str) -> Finding:
    fix = f"export {role.upper()}_LLM_BASE_URL=... {role.upper()}_LLM_MODEL=..., then restart the inference service"
    if role == "embed":
        return Finding("ok", "role embed", "no endpoint: search uses BM25")
    if role == "vision":
        return Finding("warn", "role vision", "no endpoint: observe_frame will fail", fix)
    return Finding("FAIL", f"role {role}", "no endpoint serves it", fix)
