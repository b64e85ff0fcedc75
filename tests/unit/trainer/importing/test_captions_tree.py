"""TRN-1: a tree from a caption a second."""

import itertools
import time
from pathlib import Path

import pytest

from services.trainer.adapters.caption_archive import open_captions
from services.trainer.domain.importing.captions_tree import CaptionFault, captions_tree, parse_captions
from services.trainer.domain.importing.extract import read_caption, summary
from services.trainer.domain.importing.segments import PieceLength, cut
from services.video_tree import parse_tree, render_tree

LENGTH = PieceLength(wanted=5, shortest=3, longest=9)


def captions(*parts: tuple[str, int]) -> dict[int, str]:
    texts = [f"The image showcases {text}." for text, seconds in parts for _ in range(seconds)]
    return dict(enumerate(texts))


def test_trn_1_boundaries_lie_where_neighbours_differ_most() -> None:
    differences = [0.1] * 19
    differences[3] = differences[10] = 0.9
    assert {0, 4, 11} <= {start for start, _ in cut(differences, LENGTH)}


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 10, 11, 47, 180])
def test_trn_1_pieces_cover_the_sequence_within_their_bounds(count: int) -> None:
    pieces = cut([0.5] * (count - 1), LENGTH)
    assert [place for piece in pieces for place in range(*piece)] == list(range(count))
    assert all(3 <= end - start <= 9 for start, end in pieces) or count < 3
    assert count < 10 or 4 <= count / len(pieces) <= 6


def test_trn_1_the_tree_has_a_frame_a_caption_and_changes_between_events() -> None:
    tree = captions_tree(
        "77", captions(("a dog on a lawn", 4), ("two boys in a pool", 6), ("a red car in a street", 5))
    )
    assert [(event.start_seconds, event.end_seconds) for event in tree.at_level(2)] == [(0, 4), (4, 10), (10, 15)]
    assert [event.text for event in tree.at_level(2)] == [
        "A dog on a lawn.",
        "Two boys in a pool.",
        "A red car in a street.",
    ]
    (scene,) = tree.at_level(1)
    assert scene.text == "A dog on a lawn. Two boys in a pool. A red car in a street."
    assert [frame.node_id for frame in tree.at_level(3)] == [f"77_L3_{second:03d}" for second in range(15)]
    assert (tree.duration_seconds, tree.duration_category) == (15.0, "short")


def test_trn_1_every_tree_made_from_captions_is_sound() -> None:
    for seconds in (1, 2, 3, 7, 29, 61, 180):
        texts = {second: f"A man {second % 7} walks past house {second // 5}." for second in range(seconds)}
        tree = captions_tree("v", texts)
        assert parse_tree(render_tree(tree)) == tree


def test_trn_1_seconds_may_be_missing() -> None:
    tree = captions_tree("v", {0: "A dog.", 2: "A dog.", 9: "A cat."})
    assert parse_tree(render_tree(tree)) == tree
    assert tree.duration_seconds == 10.0


def test_trn_1_a_summary_says_each_thing_once_and_begins_with_who_does_what() -> None:
    texts = [
        "The image showcases a boy riding a horse. The grass is green.",
        "The image showcases a boy riding a horse. The grass is green. A girl waves a flag.",
        "The image showcases a boy riding a horse. The overall ambiance is calm.",
    ]
    text = summary([read_caption(caption) for caption in texts], {}, 80)
    assert text.startswith("A boy riding a horse.")
    assert text.count("horse") == 1
    assert "flag" in text
    assert len(text) <= 80


def test_trn_1_abbreviations_and_numbers_end_no_sentence() -> None:
    caption = read_caption(
        "The sign reads 'HEX MNT. TR. NO. 1343' in white. A man waves. 2 dogs run past him. he sits down."
    )
    assert [sentence.text for sentence in caption.sentences] == [
        "The sign reads 'HEX MNT. TR. NO. 1343' in white.",
        "A man waves. 2 dogs run past him.",
        "He sits down.",
    ]


def test_trn_1_a_tie_goes_to_the_earlier_sentence_in_every_process() -> None:
    """A set gives its words in another order in each process, and sums of floats depend on their order."""
    for number in range(300):
        words = [[f"{letter}{place}x{number:03d}" for place in range(6)] for letter in "ab"]
        value = {word: 0.1 * place + 0.7 for of_one in words for place, word in enumerate(of_one, start=1)}
        first, second = (" ".join(of_one).capitalize() + "." for of_one in words)
        assert summary([read_caption(first), read_caption(second)], value, len(first) + 1) == first


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"[]", "an object of captions"),
        (b"{}", "an object of captions"),
        (b"{", "not valid JSON"),
        (b"\xff", "not valid JSON"),
        (b'{"a": "x"}', "'a' is no second"),
        (b'{"0": " "}', "second 0 is empty"),
        (b'{"0": 3}', "second 0 is empty or not text"),
        (b'{"0": "x", "00": "y"}', "stands twice"),
    ],
)
def test_trn_1_faulty_captions_are_named(content: bytes, fault: str) -> None:
    with pytest.raises(CaptionFault, match=fault):
        parse_captions(content)


@pytest.mark.slow
def test_trn_1_all_real_captions_give_sound_readable_trees_in_time(public_data: Path) -> None:
    started = time.process_time()
    with open_captions(public_data / "nextqa/nextqa_allcaps_1fps.zip") as archive:
        trees = [captions_tree(video, parse_captions(archive.read(video))) for video in sorted(archive.video_ids())]
    seconds = time.process_time() - started
    assert len(trees) == 570
    assert sum(len(tree.at_level(3)) for tree in trees) == 24_089
    assert all(parse_tree(render_tree(tree)) == tree for tree in trees[::10])
    lengths = [node.end_seconds - node.start_seconds for tree in trees for node in tree.at_level(2)]
    assert 4 <= sum(lengths) / len(lengths) <= 6
    long_videos = [tree for tree in trees if tree.duration_seconds >= 60]
    scenes = list(itertools.chain.from_iterable(tree.at_level(1) for tree in long_videos))
    assert 24 <= sum(node.end_seconds - node.start_seconds for node in scenes) / len(scenes) <= 36
    assert not any("image showcases" in node.text for tree in trees for node in tree.at_level(1))
    assert seconds < 30
