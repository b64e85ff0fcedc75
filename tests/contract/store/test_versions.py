"""Versions of skills and prompts (STO-3), on every store."""

from __future__ import annotations

import hashlib

import pytest
from grpc import StatusCode
from videotree.store.v1 import version_pb2
from videotree.store.v1 import version_service_pb2 as pb

from tests.builders.store_requests import (
    PROMPTS,
    SKILLS,
    WORKSPACE,
    change,
    make_workspace,
    publish,
    refused,
    version_texts,
)
from tests.fakes.store_client import StoreClient


async def test_sto_3_a_version_is_its_parent_with_files_replaced_added_and_removed(client: StoreClient) -> None:
    await make_workspace(client)
    wanted = change({"new.md": "new\n"}, "v1", removed=["action-reasoning.md"], trigger_run="r", description="why")
    answer = await publish(client, wanted)
    assert (answer.version.version, answer.version.parent, answer.created) == ("v2", "v1", True)
    assert (answer.version.trigger_run, answer.version.description) == ("r", "why")
    assert await version_texts(client, "v2") == {"new.md": "new\n", "default-strategy.md": "search\n"}
    assert await version_texts(client, "v1") == {"action-reasoning.md": "look\n", "default-strategy.md": "search\n"}


async def test_sto_3_content_identical_to_the_parent_returns_the_parent(client: StoreClient) -> None:
    await make_workspace(client)
    answer = await publish(client, change({"action-reasoning.md": "look\r\n"}, "v1"))
    assert (answer.version.version, answer.created) == ("v1", False)
    listed = await client.versions.ListVersions(pb.ListVersionsRequest(workspace=WORKSPACE, kind=SKILLS))
    assert [each.version for each in listed.versions] == ["v1"]


async def test_sto_3_line_ends_become_lf_and_hashes_are_of_the_stored_text(client: StoreClient) -> None:
    await make_workspace(client)
    await publish(client, change({"action-reasoning.md": "a\r\nb\rc\n"}, "v1"))
    request = pb.GetVersionRequest(workspace=WORKSPACE, kind=SKILLS, version="v2")
    version = (await client.versions.GetVersion(request)).version
    file = version.files[0]
    assert (file.name, file.text) == ("action-reasoning.md", "a\nb\nc\n")
    assert file.sha256 == hashlib.sha256(b"a\nb\nc\n").hexdigest()
    listing = "".join(f"{each.name}\0{each.sha256}\n" for each in version.files)
    assert version.sha256 == hashlib.sha256(listing.encode()).hexdigest()


@pytest.mark.parametrize(
    "name",
    ["../up.md", "a/b.md", "a\\b.md", "..md", ".hidden.md", "A.md", "a.txt", "a\0.md", "", "a..md", "ü.md", "a.md\n"],
)
async def test_sto_3_a_file_name_that_is_no_plain_lower_case_component_is_refused(
    client: StoreClient, name: str
) -> None:
    await make_workspace(client)
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await publish(client, change({name: "text"}, "v1"))
    assert answer.reason == "INVALID_VERSION_FILE"
    assert next(iter(answer.fields)).startswith("overrides[")
    assert (
        len((await client.versions.ListVersions(pb.ListVersionsRequest(workspace=WORKSPACE, kind=SKILLS))).versions)
        == 1
    )


async def test_sto_3_names_that_differ_by_case_only_can_not_meet(client: StoreClient) -> None:
    await make_workspace(client)
    with refused(StatusCode.INVALID_ARGUMENT):
        await publish(client, change({"Action-Reasoning.md": "x"}, "v1"))


async def test_sto_3_one_mebibyte_is_the_limit_of_a_file(client: StoreClient) -> None:
    await make_workspace(client)
    assert (await publish(client, change({"big.md": "x" * 2**20}, "v1"))).created
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await publish(client, change({"big.md": "x" * 2**20 + "y"}, "v1"))
    assert "1048576" in answer.message


async def test_sto_3_a_nul_character_is_refused(client: StoreClient) -> None:
    await make_workspace(client)
    with refused(StatusCode.INVALID_ARGUMENT):
        await publish(client, change({"a.md": "x\0y"}, "v1"))


async def test_sto_3_removing_what_is_not_there_or_everything_is_refused(client: StoreClient) -> None:
    await make_workspace(client)
    for removed in (["missing.md"], ["action-reasoning.md", "default-strategy.md"]):
        with refused(StatusCode.INVALID_ARGUMENT):
            await publish(client, change({}, "v1", removed=removed))


async def test_sto_3_an_unknown_parent_or_version_is_not_found(client: StoreClient) -> None:
    await make_workspace(client)
    with refused(StatusCode.NOT_FOUND):
        await publish(client, change({"a.md": "x"}, "v9"))
    with refused(StatusCode.NOT_FOUND):
        await version_texts(client, "v2")
    with refused(StatusCode.INVALID_ARGUMENT):
        await version_texts(client, "../v1")


async def test_sto_3_an_unset_kind_or_source_is_refused_by_field(client: StoreClient) -> None:
    await make_workspace(client)
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        await publish(client, version_pb2.VersionChange(parent="v1", overrides={"a.md": "x"}))
    assert list(answer.fields) == ["change.kind"]


async def test_sto_3_a_diff_is_unified_over_all_files_and_empty_when_equal(client: StoreClient) -> None:
    await make_workspace(client)
    await publish(client, change({"action-reasoning.md": "look twice", "z.md": "z\n"}, "v1"))
    request = pb.DiffVersionsRequest(workspace=WORKSPACE, kind=SKILLS, from_version="v1", to_version="v2")
    diff = (await client.versions.DiffVersions(request)).unified_diff
    assert diff == (
        "--- v1/action-reasoning.md\n+++ v2/action-reasoning.md\n@@ -1 +1 @@\n-look\n+look twice\n"
        "\\ No newline at end of file\n--- /dev/null\n+++ v2/z.md\n@@ -0,0 +1 @@\n+z\n"
    )
    request.to_version = "v1"
    assert (await client.versions.DiffVersions(request)).unified_diff == ""


async def test_sto_13_versions_are_listed_in_publishing_order_page_by_page(client: StoreClient) -> None:
    await make_workspace(client)
    for number in range(1, 12):
        await publish(client, change({"a.md": f"{number}\n"}, f"v{number}"))
    seen, token = [], ""
    while True:
        request = pb.ListVersionsRequest(workspace=WORKSPACE, kind=SKILLS, page_size=5, page_token=token)
        page = await client.versions.ListVersions(request)
        seen += [each.version for each in page.versions]
        token = page.next_page_token
        if not token:
            break
    assert seen == [f"v{number}" for number in range(1, 13)]
    with refused(StatusCode.INVALID_ARGUMENT) as answer:
        first = pb.ListVersionsRequest(workspace=WORKSPACE, kind=SKILLS, page_size=5)
        token = (await client.versions.ListVersions(first)).next_page_token
        await client.versions.ListVersions(pb.ListVersionsRequest(workspace=WORKSPACE, kind=PROMPTS, page_token=token))
    assert answer.reason == "INVALID_PAGE_TOKEN"
