"""INF-3: the event stream decoder, against a slow and plain reading of the standard."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.inference.domain.sse import EventTooLarge, SseDecoder, SseEvent


def by_the_standard(body: bytes) -> list[SseEvent]:
    """Section 9.2.6 of the HTML standard, word by word; the end of the body ends the last event too."""
    body = body.removeprefix(b"\xef\xbb\xbf")
    lines = re.split(rb"\r\n|\n|\r", body)
    events, name, data = [], b"", []
    for line in [*lines, b""]:
        if line == b"":
            joined = b"\n".join(data)
            if joined:
                events.append(SseEvent(name, joined))
            name, data = b"", []
            continue
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    return events


def decoded(pieces):
    decoder = SseDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events + decoder.close()


LINES = st.sampled_from(
    [b"data: a", b"data:b", b"data:  c", b"data", b"data:", b": comment", b"", b"event: error", b"event:x", b"id: 3",
     b"retry: 1", "data: 漢字😀\u2028\u0085".encode(), b"data: [DONE]", b"datax: no", b"\xff\xfe", b"da", b" data: no"]
)  # fmt: skip
BODIES = st.builds(
    lambda bom, parts: bom + b"".join(line + end for line, end in parts),
    st.sampled_from([b"", b"\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbf", b"\xef\xbb"]),
    st.lists(
        st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n", b"\r\n\r\n", b"\r\r", b""])), max_size=12
    ),
)


@settings(max_examples=300)
@given(BODIES, st.data())
def test_inf_3_any_body_in_any_pieces_gives_the_events_of_the_standard(body, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=8)))
    pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert decoded(pieces) == by_the_standard(body)


@settings(max_examples=200)
@given(st.binary(max_size=300), st.integers(1, 7))
def test_qua_13_any_bytes_give_the_events_of_the_standard(body, size):
    pieces = [body[i : i + size] for i in range(0, len(body), size)]
    assert decoded(pieces) == by_the_standard(body)


def test_inf_3_every_cut_of_two_is_the_same():
    body = "\ufeffdata: 漢\r\ndata: 😀\u2028\r\r: c\n\nevent: x\rdata:y\u0085\n\n".encode()
    whole = by_the_standard(body)
    assert whole == [SseEvent(b"", "漢\n😀\u2028".encode()), SseEvent(b"x", "y\u0085".encode())]
    for first in range(len(body) + 1):
        for second in range(first, len(body) + 1):
            assert decoded([body[:first], body[first:second], body[second:]]) == whole


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 600, b"data:\n" * 300, b"x" * 100, b": c" * 100])
def test_inf_3_what_is_held_back_is_bounded(piece):
    decoder = SseDecoder(max_event_bytes=1000)

    def feed_much():
        for _ in range(30):
            decoder.feed(piece)

    with pytest.raises(EventTooLarge):
        feed_much()


def test_inf_3_many_events_of_a_size_below_the_bound_are_fine():
    decoder = SseDecoder(max_event_bytes=1000)
    count = sum(len(decoder.feed(b"data: " + b"x" * 500 + b"\n\n")) for _ in range(100))
    assert count == 100
