"""What an agent did for one question, and how it is shown to a model within a bound."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CUT_MARK = "[... cut ...]"
_OUTPUT_LIMITS = (6000, 3000, 1500, 800, 400, 200, 100)
_BYTES_PER_TOKEN = 3


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One reply of the agent and what came of it; `step` is its place in the conversation."""

    step: int
    tool: str
    args: Mapping[str, Any]
    output: str
    thought: str

    @property
    def is_fault(self) -> bool:
        """Whether the reply could not be carried out or read."""
        return not self.tool or self.output.startswith("<fault>")

    @property
    def opened_nodes(self) -> tuple[str, ...]:
        """The ids of the nodes that this step opened or looked at; none for a fault."""
        if self.is_fault:
            return ()
        named = self.args.get("node_ids") if self.tool == "observe_frame" else None
        if self.tool == "view_node":
            named = [self.args.get("node_id")]
        return tuple(node for node in named if isinstance(node, str)) if isinstance(named, list) else ()


def estimate_tokens(text: str) -> int:
    """Return an upper estimate of the tokens of `text`: one for each three bytes of UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)


def arguments_of(args_json: str) -> Mapping[str, Any]:
    """Return the decoded arguments of a stored step; what is no JSON object is kept as text under `unreadable`."""
    try:
        value = json.loads(args_json) if args_json else {}
    except (ValueError, RecursionError):
        return {"unreadable": args_json}
    return value if isinstance(value, dict) else {"unreadable": args_json}


def rebuild_trace(steps_json: str) -> tuple[TraceStep, ...]:
    """Return the trace out of a prediction's `steps_json`, for a run whose trace rows are missing.

    What can't be read as a list of objects gives no steps: such a case has no trace, and that is what is shown.
    """
    try:
        entries = json.loads(steps_json) if steps_json else []
    except (ValueError, RecursionError):
        return ()
    if not isinstance(entries, list):
        return ()
    return tuple(_rebuilt(index, entry) for index, entry in enumerate(entries) if isinstance(entry, dict))


def _rebuilt(index: int, entry: Mapping[str, Any]) -> TraceStep:
    step, args = entry.get("step"), entry.get("args")
    return TraceStep(
        step if isinstance(step, int) else index,
        _text(entry.get("tool")),
        args if isinstance(args, dict) else {},
        _text(entry.get("output")),
        _text(entry.get("thought")),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def trace_text(trace: Sequence[TraceStep], max_tokens: int) -> tuple[str, bool]:
    """Return the trace as text of at most `max_tokens` (as `estimate_tokens` counts), and whether anything was cut.

    Long texts are shortened in their middle first, step by step alike; if that isn't enough, steps are left out, those
    in the middle first, because how a search began and why it ended explain the answer. Every cut is marked.
    """
    whole = _joined(trace, None)
    if estimate_tokens(whole) <= max_tokens:
        return whole, False
    for limit in _OUTPUT_LIMITS:
        text = _joined(trace, limit)
        if estimate_tokens(text) <= max_tokens:
            return text, True
    return _without_middle(trace, max_tokens), True


def shortened(text: str, limit: int) -> str:
    """Return `text` if it has at most `limit` characters, else its two ends around the cut mark."""
    if len(text) <= limit:
        return text
    half = max(1, (limit - len(CUT_MARK)) // 2)
    return f"{text[:half]} {CUT_MARK} {text[-half:]}"


def _joined(trace: Sequence[TraceStep], limit: int | None) -> str:
    return "\n".join(_step_text(step, limit) for step in trace)


def _step_text(step: TraceStep, limit: int | None) -> str:
    def fit(text: str) -> str:
        return text if limit is None else shortened(text, limit)

    return "\n".join(
        _step_lines(step, fit(step.thought), fit(json.dumps(step.args, ensure_ascii=False)), fit(step.output))
    )


def _step_lines(step: TraceStep, thought: str, args: str, output: str) -> Iterator[str]:
    yield f'<step n="{step.step}">'
    if thought:
        yield f"<thought>{thought}</thought>"
    if step.tool:
        yield f"<call>{step.tool} {args}</call>"
    if output:
        yield f"<output>{output}</output>"
    yield "</step>"


def _without_middle(trace: Sequence[TraceStep], max_tokens: int) -> str:
    """Return steps taken from both ends in turn as long as they fit, with a mark in between."""
    texts = [_step_text(step, _OUTPUT_LIMITS[-1]) for step in trace]
    first, last, taken_end = 0, len(texts), True
    while first < last:
        index = last - 1 if taken_end else first
        kept = [*texts[:first], *texts[last:], texts[index], f"[... {len(texts)} steps cut ...]"]
        if estimate_tokens("\n".join(kept)) > max_tokens:
            break
        first, last = (first, last - 1) if taken_end else (first + 1, last)
        taken_end = not taken_end
    return "\n".join([*texts[:first], f"[... {last - first} steps cut ...]", *texts[last:]])
