"""The project's own checks find what they are for, and only that."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from checks import adr_index, docs_links, generated_code_is_fresh, no_place_names, protos_are_compatible


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    return tmp_path


def test_links_and_anchors_that_lead_somewhere_are_no_faults(repository: Path) -> None:
    (repository / "a.md").write_text(
        "# Top\n[b](b.md) [deep](docs/c.md#two-words-here) [self](#top) [web](https://example.org)\n", "utf-8"
    )
    (repository / "b.md").write_text("`[code](nowhere.md)`\n\n```\n[fence](nowhere.md)\n```\n", "utf-8")
    (repository / "docs").mkdir()
    (repository / "docs" / "c.md").write_text("## Two words, here!\n[up](../a.md)\n[rooted](/b.md)\n", "utf-8")
    assert docs_links.faults(repository) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[gone](gone.md)", "a.md: gone.md: no such file"),
        ("[anchor](b.md#three)", "a.md: b.md#three: no such heading"),
        ("[reference]\n\n[reference]: gone.md", "a.md: gone.md: no such file"),
        ("![picture](gone.png)", "a.md: gone.png: no such file"),
    ],
)
def test_a_link_that_leads_nowhere_is_named(repository: Path, text: str, fault: str) -> None:
    (repository / "a.md").write_text(text, "utf-8")
    (repository / "b.md").write_text("# One\n# Two", "utf-8")
    assert docs_links.faults(repository) == [fault]


@pytest.mark.parametrize(
    "text",
    ["https://py" + "pi.org/simple", "docker" + ".io/library/redis", "/ho" + "me/someone/x", "cd /ro" + "ot/project"],
)
def test_a_host_or_a_machines_path_is_named_with_its_line(repository: Path, text: str) -> None:
    (repository / "notes.txt").write_text(f"fine\n{text}\n", "utf-8")
    (fault,) = no_place_names.faults(repository)
    assert fault.startswith("notes.txt:2: ")


def test_ordinary_words_binary_and_ignored_files_name_no_place(repository: Path) -> None:
    (repository / "a.txt").write_text("apt-get install docker.io\n/data/work/ root/ /proot/ homework\n", "utf-8")
    (repository / "b.bin").write_bytes(b"\xff\xfe/ro" + b"ot/")
    (repository / ".gitignore").write_text("ignored\n", "utf-8")
    (repository / "ignored").write_text("/ro" + "ot/secret", "utf-8")
    assert no_place_names.faults(repository) == []


def test_generated_code_differs_when_a_file_changed_is_missing_or_is_left_over(tmp_path: Path) -> None:
    committed, fresh = tmp_path / "committed", tmp_path / "fresh"
    for folder in (committed, fresh):
        folder.mkdir()
        (folder / "same_pb2.py").write_text("1", "utf-8")
    (committed / "changed_pb2.py").write_text("1", "utf-8")
    (fresh / "changed_pb2.py").write_text("2", "utf-8")
    (committed / "left_over_pb2.py").touch()
    (fresh / "missing_pb2.pyi").touch()
    assert generated_code_is_fresh.differences(committed, fresh) == [
        "changed_pb2.py",
        "left_over_pb2.py",
        "missing_pb2.pyi",
    ]


def test_the_index_lists_records_by_number_with_their_titles(tmp_path: Path) -> None:
    (tmp_path / "0002-second.md").write_text("# ADR 0002: The second\n", "utf-8")
    (tmp_path / "0001-first.md").write_text("# The first\n", "utf-8")
    (tmp_path / "README.md").write_text("# Old index\n", "utf-8")
    lines = adr_index.index(tmp_path).splitlines()
    assert lines[-2:] == ["- 0001 [The first](0001-first.md)", "- 0002 [The second](0002-second.md)"]


TWO_METHODS = """syntax = "proto3";
package shop.v1;
service ShopService { rpc Buy(BuyRequest) returns (BuyResponse); rpc Sell(BuyRequest) returns (BuyResponse); }
message BuyRequest { string name = 1; }
message BuyResponse {}
"""


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("string name = 1;", "string name = 1; string colour = 2;", 0),
        ("string name = 1;", "string title = 1;", 100),
        (" rpc Sell(BuyRequest) returns (BuyResponse);", "", 100),
        ("ShopService", "StoreService", 100),
    ],
)
def test_a_proto_that_a_client_would_miss_something_in_is_refused(
    repository: Path, monkeypatch: pytest.MonkeyPatch, before: str, after: str, code: int
) -> None:
    folder = repository / "protos" / "shop" / "v1"
    folder.mkdir(parents=True)
    shutil.copy(protos_are_compatible.ROOT / "protos" / "buf.yaml", repository / "protos")
    (folder / "shop.proto").write_text(TWO_METHODS, "utf-8")
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "--quiet", "-m", "two methods"], check=True)
    (folder / "shop.proto").write_text(TWO_METHODS.replace(before, after), "utf-8")
    monkeypatch.setattr(protos_are_compatible, "ROOT", repository)
    monkeypatch.delenv("BREAKING_AGAINST", raising=False)
    assert protos_are_compatible.main() == code
