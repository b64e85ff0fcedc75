"""Bytes of a `text/event-stream` body to events, incrementally (INF-3).

Source: the event stream grammar of the HTML standard, section 9.2.6. It works on bytes and splits at LF, CRLF and lone
CR only, so that U+2028 or U+0085 inside a text never ends a line, and a multi-byte character may be cut anywhere.
One deviation: an event that the end of the body leaves without its blank line is given out by `close` (servers do end
a body right after `data: [DONE]`); a cut event is no valid JSON, so that it can not pass for a whole one.
"""

from __future__ import annotations

from dataclasses import dataclass

_BOM = b"\xef\xbb\xbf"
_CR = 0x0D


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event: its `event` field (empty when unnamed) and its `data` lines joined by LF, still UTF-8 bytes."""

    name: bytes
    data: bytes


class EventTooLarge(ValueError):
    """One line or event is longer than the decoder's limit: the body is no sensible event stream."""


class SseDecoder:
    """Feed it the body in pieces of any size; it returns the events that each piece completes.

    Time and memory are linear in the body. `max_event_bytes` bounds what it holds back.
    """

    __slots__ = ("_after_cr", "_at_start", "_data", "_event_bytes", "_max_event_bytes", "_name", "_tail", "_tail_bytes")

    def __init__(self, max_event_bytes: int = 16 * 1024 * 1024) -> None:
        self._max_event_bytes = max_event_bytes
        self._tail: list[bytes] = []
        self._tail_bytes = 0
        self._event_bytes = 0
        self._at_start = True
        self._after_cr = False
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[SseEvent]:
        """The events completed by `piece`. Raises `EventTooLarge`."""
        if not piece:
            return []
        if self._at_start:
            return self._feed_start(piece)
        if self._after_cr:
            self._after_cr = False
            if piece.startswith(b"\n"):
                piece = piece[1:]
        if b"\n" not in piece and b"\r" not in piece:
            self._hold(piece)
            return []
        return self._take_lines(piece)

    def close(self) -> list[SseEvent]:
        """The event that the end of the body leaves unfinished, if it has data."""
        if self._at_start:
            self._at_start = False
        last_line = b"".join(self._tail)
        self._tail = []
        events: list[SseEvent] = []
        if last_line:
            self._take_line(last_line, events)
        self._take_line(b"", events)
        return events

    def _feed_start(self, piece: bytes) -> list[SseEvent]:
        """Drop one leading BOM, waiting while the body so far could still become one."""
        piece = b"".join([*self._tail, piece])
        if len(piece) < len(_BOM) and _BOM.startswith(piece):
            self._tail = [piece]
            return []
        self._tail = []
        self._at_start = False
        return self.feed(piece.removeprefix(_BOM))

    def _hold(self, piece: bytes) -> None:
        self._tail_bytes += len(piece)
        self._check_size()
        self._tail.append(piece)

    def _add_data(self, data: bytes) -> None:
        self._event_bytes += len(data) + 1
        self._check_size()
        self._data.append(data)

    def _check_size(self) -> None:
        if self._tail_bytes + self._event_bytes > self._max_event_bytes:
            raise EventTooLarge(f"an event of the stream is longer than {self._max_event_bytes} bytes")

    def _take_lines(self, piece: bytes) -> list[SseEvent]:
        self._after_cr = piece[-1] == _CR
        if b"\r" in piece:
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = piece.split(b"\n")
        if self._tail:
            lines[0] = b"".join([*self._tail, lines[0]])
            self._tail, self._tail_bytes = [], 0
        rest = lines.pop()
        events: list[SseEvent] = []
        for line in lines:
            self._take_line(line, events)
        if rest:
            self._hold(rest)
        return events

    def _take_line(self, line: bytes, events: list[SseEvent]) -> None:
        if line.startswith(b"data:"):
            self._add_data(line[6:] if line.startswith(b"data: ") else line[5:])
        elif not line:
            if self._data:
                data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                if data:
                    events.append(SseEvent(self._name, data))
                self._data, self._event_bytes = [], 0
            self._name = b""
        elif line.startswith(b"event:"):
            self._name = line[6:].removeprefix(b" ")
        elif line == b"data":
            self._add_data(b"")
