"""The faults the simulator can show on the wire, by name, and what each looks like to a client."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

FAULT_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "rate_limited": "429 with Retry-After",
        "server_error": "503 with a JSON error",
        "bad_request": "400 with a JSON error",
        "reset_before": "the connection is reset before any byte of the answer",
        "reset_after": "the connection is reset after `after_chunks` chunks",
        "clean_cut": "the stream ends cleanly without finish_reason and [DONE]",
        "length": "finish_reason is length, the text is cut",
        "stream_error": "an error object inside the stream, after `after_chunks` chunks",
        "html": "200 with an HTML page",
        "empty": "200 with an empty body",
        "crlf": "CRLF line ends (harmless)",
        "lone_cr": "lone CR line ends (harmless)",
        "bom": "a byte order mark before the first event (harmless)",
        "odd_chunks": "pieces of 7 bytes, cutting lines and UTF-8 characters, with comments between (harmless)",
        "no_done": "finish_reason but no [DONE] (harmless)",
        "held_open": "the answer is whole, then the socket stays open for `hold_seconds`",
        "stalled": "`after_chunks` chunks, then silence for `hold_seconds`, then a reset",
        "silent": "no byte for `hold_seconds`, then a reset",
    }
)
HARMLESS_KINDS = frozenset({"crlf", "lone_cr", "bom", "odd_chunks", "no_done", "held_open"})
