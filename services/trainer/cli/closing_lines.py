"""The last lines of a training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def closing_lines(summary: Mapping[str, Any], path: str) -> list[str]:
    """What was accepted and rejected, accuracy before and after, where to read on; `path` is that of the summary."""
    return [
        *(_gate_line(gate) for gate in summary["gates"]),
        *(f"published {each['version']}: {each['description']}" for each in summary["published_between_steps"]),
        *_early_stop_lines(summary),
        *_accuracy_lines(summary),
        f"{summary['model_calls']} model calls, {summary['cache_hits']} from the cache, "
        f"{summary['wall_seconds']:.1f} s; report: videotree report {summary['run_id']}",
        f"summary: {path}",
    ]


def _gate_line(gate: Mapping[str, Any]) -> str:
    word = "accepted" if str(gate["decision"]).startswith("ACCEPT") else "rejected"
    into = f"  -> {gate['accepted_version']}" if gate["accepted_version"] else ""
    return (
        f"{word}  {gate['epoch']}.{gate['step']}  {gate['task_type']}: {gate['decision']}{into}  "
        f"W {gate['w']}  L {gate['l']}  E {gate['e_value']:.3g}  units {gate['n_used']}/{gate['n_planned']}  "
        f"smallest gain it would have confirmed: {_gain(gate['detectable_gain'])}"
    )


def _early_stop_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    if summary["stopped_early"]:
        yield f"stopped early after {summary['epochs']} epochs: the last ones brought no better best on val"


def _accuracy_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    before, after = _percent(summary["val_accuracy_before"]), _percent(summary["val_accuracy_after"])
    yield (
        f"skills {summary['skills_version_before']} -> {summary['skills_version_after']}  "
        f"val accuracy {before} -> {after} (val selects among versions, so it is optimistic)"
    )
    if summary["prompts_version_before"] != summary["prompts_version_after"]:
        yield f"prompts {summary['prompts_version_before']} -> {summary['prompts_version_after']}"
    final = [line for line in summary["test"] if line["line"] in {"baseline", "final"}][-2:]
    if final:
        yield "held-out test: " + ", ".join(f"{line['line']} {_percent(line['accuracy'])}" for line in final)


def _percent(value: float | None) -> str:
    return "not recorded" if value is None else f"{value:.1%}"


def _gain(gain: float | None) -> str:
    return "none at this length" if gain is None else f"{gain:.2f}"
