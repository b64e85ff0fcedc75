"""Question sets, video trees and frames, on every store."""

from __future__ import annotations

from typing import Any

import pytest
from grpc import StatusCode
from videotree.store.v1 import library_service_pb2 as pb
from videotree.store.v1 import video_pb2, workspace_service_pb2

from tests.builders.store_requests import WORKSPACE, append, make_workspace, prediction, question, refused, tree
from tests.fakes.store_client import StoreClient


async def _import(client: StoreClient, *questions: Any, force: bool = False) -> pb.ImportQuestionsResponse:
    request = pb.ImportQuestionsRequest(dataset="sample", questions=questions, force=force)
    return await client.library.ImportQuestions(request)


async def test_questions_come_back_as_they_were_imported_in_file_order(client: StoreClient) -> None:
    questions = [question(3), question(1, unit_id="u"), question(2, unit_id="u", options=["a", "b\u2028c", "d"])]
    await _import(client, *questions)
    answer = await client.library.ListQuestions(pb.ListQuestionsRequest(dataset="sample"))
    assert [each.question_id for each in answer.questions] == ["q3", "q1", "q2"]
    assert answer.questions[0].unit_id == "q3"
    assert list(answer.questions[2].options) == ["a", "b\u2028c", "d"]


async def test_one_faulty_question_imports_none_and_is_named(client: StoreClient) -> None:
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await _import(client, question(0), question(1, answer="C"), question(2, options=["only"]))
    assert list(answer.fields) == ["questions[1]"]
    assert "q1" in answer.message
    with refused(StatusCode.NOT_FOUND):
        await client.library.ListQuestions(pb.ListQuestionsRequest(dataset="sample"))


async def test_duplicate_question_ids_are_refused(client: StoreClient) -> None:
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await _import(client, question(0), question(0))
    assert list(answer.fields) == ["questions[1]"]


async def test_importing_the_same_again_is_a_no_op_and_other_content_needs_force(client: StoreClient) -> None:
    first = await _import(client, question(0))
    assert await _import(client, question(0)) == first
    with refused(StatusCode.ALREADY_EXISTS):
        await _import(client, question(1))
    await _import(client, question(1), force=True)
    answer = await client.library.ListQuestions(pb.ListQuestionsRequest(dataset="sample"))
    assert [each.question_id for each in answer.questions] == ["q1"]


@pytest.mark.parametrize("name", ["", "../x", "A", "a/b", ".a", "a" * 201, "-a", "a\0"])
async def test_qua_14_a_data_set_name_that_could_leave_its_folder_is_refused(client: StoreClient, name: str) -> None:
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await client.library.ImportQuestions(pb.ImportQuestionsRequest(dataset=name, questions=[question(0)]))
    assert list(answer.fields) == ["dataset"]


async def test_questions_are_returned_in_the_order_asked_and_missing_ones_named(client: StoreClient) -> None:
    await _import(client, *(question(number) for number in range(4)))
    request = pb.BatchGetQuestionsRequest(dataset="sample", question_ids=["q3", "q0"])
    answer = await client.library.BatchGetQuestions(request)
    assert [each.question_id for each in answer.questions] == ["q3", "q0"]
    with refused(StatusCode.NOT_FOUND) as missing:
        request = pb.BatchGetQuestionsRequest(dataset="sample", question_ids=[f"x{n}" for n in range(7)])
        await client.library.BatchGetQuestions(request)
    assert "x4" in missing.message
    assert "x5" not in missing.message


async def test_sto_13_questions_are_paged_and_a_token_of_replaced_content_is_refused(client: StoreClient) -> None:
    await _import(client, *(question(number) for number in range(5)))
    first = await client.library.ListQuestions(pb.ListQuestionsRequest(dataset="sample", page_size=3))
    rest = pb.ListQuestionsRequest(dataset="sample", page_size=3, page_token=first.next_page_token)
    second = await client.library.ListQuestions(rest)
    assert [each.question_id for each in [*first.questions, *second.questions]] == [f"q{n}" for n in range(5)]
    assert second.next_page_token == ""
    await _import(client, question(9), force=True)
    with refused(StatusCode.INVALID_ARGUMENT):
        await client.library.ListQuestions(rest)


@pytest.mark.parametrize("token", ["x", "%%%", "AAAA", "W10", "e30"])
async def test_sto_13_a_damaged_page_token_is_refused(client: StoreClient, token: str) -> None:
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await client.library.ListVideos(pb.ListVideosRequest(page_token=token))
    assert list(answer.fields) == ["page_token"]


async def test_sto_13_a_negative_page_size_is_refused(client: StoreClient) -> None:
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await client.library.ListVideos(pb.ListVideosRequest(page_size=-1))
    assert list(answer.fields) == ["page_size"]


async def test_a_tree_comes_back_byte_by_byte(client: StoreClient) -> None:
    content = tree("v1")
    put = await client.library.PutVideo(pb.PutVideoRequest(video_id="v1", tree_json=content))
    got = await client.library.GetVideoTree(pb.GetVideoTreeRequest(video_id="v1"))
    assert got.tree_json == content
    assert got.sha256 == put.video.tree_sha256
    assert put.video.node_count == 1


async def _tree(client: StoreClient, video_id: str) -> bytes:
    return (await client.library.GetVideoTree(pb.GetVideoTreeRequest(video_id=video_id))).tree_json


async def test_another_tree_needs_force(client: StoreClient) -> None:
    await client.library.PutVideo(pb.PutVideoRequest(video_id="v1", tree_json=tree("v1")))
    await client.library.PutVideo(pb.PutVideoRequest(video_id="v1", tree_json=tree("v1")))
    other = pb.PutVideoRequest(video_id="v1", tree_json=tree("v1", "A cat."))
    with refused(StatusCode.ALREADY_EXISTS):
        await client.library.PutVideo(other)
    assert await _tree(client, "v1") == tree("v1")
    other.force = True
    await client.library.PutVideo(other)
    assert await _tree(client, "v1") == other.tree_json


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"{}", b'{"nodes": {}}', b"[" * 100_000, tree("other")])
async def test_a_faulty_tree_is_refused_by_field(client: StoreClient, content: bytes) -> None:
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await client.library.PutVideo(pb.PutVideoRequest(video_id="v1", tree_json=content))
    assert list(answer.fields) == ["tree_json"]


@pytest.mark.parametrize("video_id", ["", "..", "../v", "a/b", "/etc", "a\\b", ".x", "a\0b", "v" * 201])
async def test_qua_14_a_video_id_that_could_leave_its_folder_is_refused(client: StoreClient, video_id: str) -> None:
    for call, request in (
        (client.library.PutVideo, pb.PutVideoRequest(video_id=video_id, tree_json=tree("v"))),
        (client.library.GetVideoTree, pb.GetVideoTreeRequest(video_id=video_id)),
        (client.library.GetFrames, pb.GetFramesRequest(video_id=video_id, names=["x"])),
    ):
        with refused(StatusCode.INVALID_ARGUMENT) as answer:
            await call(request)
        assert list(answer.fields) == ["video_id"]


_JPEG = b"\xff\xd8\xff\xe0"


@pytest.mark.parametrize(
    "bad",
    [
        video_pb2.Frame(name="../x", jpeg=_JPEG + b"\xff\xd9"),
        video_pb2.Frame(name="L3_1"),
        video_pb2.Frame(name="L3_1", jpeg=b"GIF89a\xff\xd9"),
        video_pb2.Frame(name="L3_1", jpeg=_JPEG),
        video_pb2.Frame(name="L3_1", jpeg=_JPEG + bytes(8 * 1024 * 1024) + b"\xff\xd9"),
    ],
    ids=["name", "empty", "no JPEG", "cut off", "too large"],
)
async def test_one_frame_that_cannot_be_stored_refuses_all_of_the_call(
    client: StoreClient, bad: video_pb2.Frame
) -> None:
    await client.library.PutVideo(pb.PutVideoRequest(video_id="v1", tree_json=tree("v1")))
    good = video_pb2.Frame(name="L3_0", jpeg=_JPEG + b"\xff\xd9")
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await client.library.PutFrames(pb.PutFramesRequest(video_id="v1", frames=[good, bad]))
    assert next(iter(answer.fields)).startswith("frames[1].")
    (video,) = (await client.library.ListVideos(pb.ListVideosRequest())).videos
    assert video.frame_count == 0


async def test_frames_are_stored_beside_their_tree(client: StoreClient) -> None:
    frames = [video_pb2.Frame(name=f"L3_{n}", jpeg=_JPEG + bytes([n, 0xFF, 0xD9])) for n in range(3)]
    request = pb.PutFramesRequest(video_id="v1", frames=frames)
    with refused(StatusCode.NOT_FOUND):
        await client.library.PutFrames(request)
    await client.library.PutVideo(pb.PutVideoRequest(video_id="v1", tree_json=tree("v1")))
    assert (await client.library.PutFrames(request)).video.frame_count == 3
    got = await client.library.GetFrames(pb.GetFramesRequest(video_id="v1", names=["L3_2", "L3_0"]))
    assert list(got.frames) == [frames[2], frames[0]]
    with refused(StatusCode.NOT_FOUND) as answer:
        await client.library.GetFrames(pb.GetFramesRequest(video_id="v1", names=["L3_0", "L3_9"]))
    assert "L3_9" in answer.message
    with refused(StatusCode.INVALID_ARGUMENT):
        await client.library.GetFrames(pb.GetFramesRequest(video_id="v1", names=["../tree"]))


async def test_videos_are_listed_by_id_whatever_their_case(client: StoreClient) -> None:
    for video_id in ("b", "B", "_a", "-a"):
        await client.library.PutVideo(pb.PutVideoRequest(video_id=video_id, tree_json=tree(video_id)))
    answer = await client.library.ListVideos(pb.ListVideosRequest())
    assert [each.video_id for each in answer.videos] == ["-a", "B", "_a", "b"]


async def test_a_question_that_was_answered_never_changes_nor_vanishes_also_by_force(client: StoreClient) -> None:
    await make_workspace(client)  # its question set is `sample`, with q0, q1 and q2
    await append(client, prediction("base", "q1"))
    for replaced in ([question(0), question(1, text="Another text?"), question(2)], [question(0), question(2)]):
        with refused(StatusCode.FAILED_PRECONDITION) as answer:
            await _import(client, *replaced, force=True)
        assert "workspace 'trial' holds answers to questions of 'sample'" in answer.message
        assert "(q1)" in answer.message
    held = (await client.library.ListQuestions(pb.ListQuestionsRequest(dataset="sample"))).questions
    assert [each.text for each in held] == [question(n).text for n in range(3)]
    # Nobody answered q2, and what is new spoils nothing.
    await _import(client, question(0), question(1), question(2, text="Another text?"), question(7), force=True)
    other = pb.ImportQuestionsRequest(dataset="other", questions=[question(1)])
    await client.library.ImportQuestions(other)
    await client.library.ImportQuestions(
        pb.ImportQuestionsRequest(dataset="other", questions=[question(1, text="Of another set")], force=True)
    )


async def test_a_seeds_baseline_holds_its_questions_too(client: StoreClient) -> None:
    await make_workspace(client)
    await append(client, prediction("base", "q0"))
    await client.workspaces.InitSeed(
        workspace_service_pb2.InitSeedRequest(
            name="start", source_workspace=WORKSPACE, source_run_id="base", skills_version="v1", prompts_version="v1"
        )
    )
    await client.library.ImportQuestions(pb.ImportQuestionsRequest(dataset="other", questions=[question(0)]))
    initial = workspace_service_pb2.InitialContent(dataset="other", skills={"a.md": "a"}, prompts={"p.md": "p"})
    await client.workspaces.CreateWorkspace(
        workspace_service_pb2.CreateWorkspaceRequest(name=WORKSPACE, initial=initial, force=True)
    )
    with refused(StatusCode.FAILED_PRECONDITION) as answer:
        await _import(client, question(5), force=True)
    assert "seed 'start' holds answers to questions of 'sample'" in answer.message


async def test_the_tree_of_a_video_that_was_answered_about_never_changes(client: StoreClient) -> None:
    for video_id in ("v1", "v2"):
        await client.library.PutVideo(pb.PutVideoRequest(video_id=video_id, tree_json=tree(video_id)))
    await make_workspace(client)
    await append(client, prediction("base", "q1", video_id="v1"))
    other = tree("v1", "A cat sleeps.")
    with refused(StatusCode.FAILED_PRECONDITION) as answer:
        await client.library.PutVideo(pb.PutVideoRequest(video_id="v1", tree_json=other, force=True))
    assert "workspace 'trial' holds answers about video 'v1'" in answer.message
    assert await _tree(client, "v1") == tree("v1")
    await client.library.PutVideo(pb.PutVideoRequest(video_id="v1", tree_json=tree("v1"), force=True))
    changed = tree("v2", "A cat sleeps.")
    await client.library.PutVideo(pb.PutVideoRequest(video_id="v2", tree_json=changed, force=True))
    assert await _tree(client, "v2") == changed
