"""QUA-13: no tree file crashes the reader with anything but a named fault."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.video_tree import TreeFault, parse_tree, render_tree

IDS = st.sampled_from(["v_1", "v_2", "v_3", "v_4"])
NODE = st.fixed_dictionaries(
    {"level": st.sampled_from([1, 2, 3, 3, None]), "time_range": st.just([0, 5])},
    optional={
        "card": st.dictionaries(st.sampled_from(["scene_summary", "x"]), st.text() | st.integers()),
        "children_ids": st.lists(IDS, max_size=2),
        "subtitle": st.none() | st.text(),
    },
)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(IDS, NODE, max_size=4))
def test_agt_3_any_nodes_give_a_tree_that_round_trips_or_a_named_fault(nodes: dict[str, object]) -> None:
    try:
        tree = parse_tree(json.dumps({"videoID": "v", "nodes": nodes}).encode())
    except TreeFault:
        return
    assert parse_tree(render_tree(tree)) == tree
    assert all(node.children_ids == () for node in tree.at_level(3))


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=100))
def test_qua_13_any_bytes_give_a_named_fault(content: bytes) -> None:
    with pytest.raises(TreeFault):
        parse_tree(content)
