"""INF-3: bodies recorded byte for byte from real OpenAI-compatible servers."""

import json
import os
from pathlib import Path

import pytest

from services.inference.domain.completion_stream import CompletionStream
from services.inference.domain.outcome import AttemptFault, Outcome
from services.inference.domain.sse import SseDecoder

DATA = Path(os.environ.get("VIDEOTREE_TEST_DATA") or Path(__file__).parents[4] / "shared" / "data") / "sse"
pytestmark = pytest.mark.public_data

RECORDINGS = [
    ("llamacpppython.stream", None),
    ("llamacpppython.stream_len3", None),
    ("llamacpppython.stream_usage", None),
    ("xllamacpp.stream", None),
    ("xllamacpp.stream_len3", None),
    ("xllamacpp.stream_usage", (27, 48, 75, 26)),
]


def body(name):
    return (DATA / f"{name}.body").read_bytes()


def read(pieces):
    decoder, stream, texts = SseDecoder(), CompletionStream(), []
    for piece in [*pieces, None]:
        for event in decoder.close() if piece is None else decoder.feed(piece):
            delta = stream.take(event)
            texts.append("" if delta is None else delta.content)
    return stream.completion("asked"), texts


@pytest.mark.parametrize(("name", "usage"), RECORDINGS)
def test_inf_3_a_recorded_stream_is_read_whole(name, usage):
    completion, texts = read([body(name)])
    # Read in another way: every line of these bodies is one event.
    chunks = [json.loads(line[6:]) for line in body(name).decode().splitlines() if line.startswith("data: {")]
    deltas = [choice.get("delta", {}) for chunk in chunks for choice in chunk["choices"]]
    assert completion.content == "".join(delta.get("content") or "" for delta in deltas) == "".join(texts)
    assert completion.content
    assert completion.finish_reason == "length"
    found = completion.usage
    assert (None if found is None else (found.prompt_tokens, found.completion_tokens, found.total_tokens,
                                        found.cached_prompt_tokens)) == usage  # fmt: skip
    assert completion.model == chunks[0]["model"]


@pytest.mark.parametrize(("name", "usage"), RECORDINGS)
def test_inf_3_the_size_of_the_pieces_changes_nothing(name, usage):
    whole = read([body(name)])[0]
    for size in (1, 2, 3, 7, 64, 1000):
        assert read([body(name)[i : i + size] for i in range(0, len(body(name)), size)])[0] == whole


@pytest.mark.parametrize(("name", "usage"), RECORDINGS)
def test_inf_3_a_recording_cut_anywhere_before_its_terminal_signal_is_truncated(name, usage):
    data = body(name)
    terminal = (
        data.index(b'"finish_reason":"length"')
        if b'"finish_reason":"length"' in data
        else data.index(b'"finish_reason": "length"')
    )
    for cut in [*range(0, terminal, 97), terminal]:
        with pytest.raises(AttemptFault) as caught:
            read([data[:cut]])
        # Cut inside an event, its rest is no JSON; both outcomes are retried and neither is kept.
        assert caught.value.outcome in (Outcome.TRUNCATED, Outcome.TRANSIENT)


@pytest.mark.parametrize("name", ["llamacpppython.nonstream", "xllamacpp.nonstream"])
def test_inf_3_a_plain_answer_is_no_stream(name):
    with pytest.raises(AttemptFault):
        read([body(name)])
