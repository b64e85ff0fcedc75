"""Torn writes (STO-2, QUA-12): whatever step fails, old content or new stands there, never a part."""

from __future__ import annotations

import ast
import contextlib
from pathlib import Path
from typing import BinaryIO

import pytest

from services.store.adapters.atomic_files import AtomicFiles, remove_leftovers
from services.store.adapters.file_operations import SystemFileOperations

STEPS = ("write", "half write", "flush", "fsync", "replace", "fsync_folder")
OLD, NEW = b"old content", b"new content, longer than the old"


class Interrupted(BaseException):
    """The process dies here: nothing after it runs, no clean-up either."""


class BreakingOperations(SystemFileOperations):
    """Breaks the n-th call of one step, by an OSError or as a crash does."""

    def __init__(self, step: str, error: BaseException, nth: int = 1) -> None:
        self._step, self._error, self._left = step, error, nth

    def _maybe_break(self, step: str) -> None:
        if step == self._step:
            self._left -= 1
            if self._left == 0:
                raise self._error

    def write(self, handle: BinaryIO, data: bytes) -> None:
        self._maybe_break("write")
        if self._step == "half write" and self._left == 1:
            super().write(handle, data[: len(data) // 2])
            handle.flush()
        self._maybe_break("half write")
        super().write(handle, data)

    def flush(self, handle: BinaryIO) -> None:
        self._maybe_break("flush")
        super().flush(handle)

    def fsync(self, handle: BinaryIO) -> None:
        self._maybe_break("fsync")
        super().fsync(handle)

    def replace(self, source: Path, target: Path) -> None:
        self._maybe_break("replace")
        super().replace(source, target)

    def fsync_folder(self, folder: Path) -> None:
        self._maybe_break("fsync_folder")
        super().fsync_folder(folder)


def _faults() -> list[BaseException]:
    return [OSError(28, "No space left on device"), Interrupted()]


@pytest.mark.parametrize("fault", _faults(), ids=["error", "crash"])
@pytest.mark.parametrize("step", STEPS)
def test_qua_12_an_interrupted_write_leaves_the_old_content_or_the_new(
    tmp_path: Path, step: str, fault: BaseException
) -> None:
    path = tmp_path / "manifest.json"
    AtomicFiles().write_file(path, OLD)
    with pytest.raises(type(fault)):
        AtomicFiles(BreakingOperations(step, fault)).write_file(path, NEW)
    assert path.read_bytes() == (NEW if step == "fsync_folder" else OLD)
    remove_leftovers(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize("step", STEPS)
def test_qua_12_a_failed_first_write_leaves_no_file(tmp_path: Path, step: str) -> None:
    path = tmp_path / "pools.json"
    with pytest.raises(OSError, match="disk"):
        AtomicFiles(BreakingOperations(step, OSError("disk"))).write_file(path, NEW)
    assert (path.read_bytes() if path.exists() else None) == (NEW if step == "fsync_folder" else None)
    assert not list(tmp_path.glob(".tmp-*"))


@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("fault", _faults(), ids=["error", "crash"])
@pytest.mark.parametrize("step", STEPS)
def test_qua_12_an_interrupted_publication_shows_the_whole_version_or_none(
    tmp_path: Path, step: str, fault: BaseException, nth: int
) -> None:
    folder = tmp_path / "v1"
    files = {"a.md": b"aaaa", "b.md": b"bbbb", "meta.json": b"{}"}
    with contextlib.suppress(OSError, Interrupted):
        AtomicFiles(BreakingOperations(step, fault, nth)).publish_folder(folder, files)
    remove_leftovers(tmp_path)
    if folder.exists():
        assert {each.name: each.read_bytes() for each in folder.iterdir()} == files
    else:
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
@pytest.mark.parametrize("fault", _faults(), ids=["error", "crash"])
@pytest.mark.parametrize("step", STEPS)
def test_qua_12_an_interrupted_addition_adds_all_its_files_or_none(
    tmp_path: Path, step: str, fault: BaseException, nth: int
) -> None:
    folder = tmp_path / "frames"
    before = {"kept.jpg": b"kept", "a.jpg": b"old"}
    AtomicFiles().add_files(folder, before)
    added = {"a.jpg": b"new", "b.jpg": b"bbbb", "c.jpg": b"cccc"}
    with contextlib.suppress(OSError, Interrupted):
        AtomicFiles(BreakingOperations(step, fault, nth)).add_files(folder, added)
    remove_leftovers(tmp_path)
    AtomicFiles().finish_additions(tmp_path)
    assert {each.name: each.read_bytes() for each in folder.iterdir()} in (before, {**before, **added})
    assert list(tmp_path.iterdir()) == [folder]


def test_an_interrupted_addition_is_finished_before_the_next_to_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "frames"
    breaking = AtomicFiles(BreakingOperations("replace", OSError("disk"), 2))
    with pytest.raises(OSError, match="disk"):
        breaking.add_files(folder, {"a.jpg": b"first", "b.jpg": b"first"})
    assert list(folder.iterdir()) == []
    AtomicFiles().add_files(folder, {"b.jpg": b"second"})
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == {"a.jpg": b"first", "b.jpg": b"second"}


def test_a_folder_that_was_never_committed_is_replaced_by_the_next_publication(tmp_path: Path) -> None:
    files = AtomicFiles()
    files.publish_folder(tmp_path / "v2", {"a.md": b"orphan", "only.md": b"x"})
    files.publish_folder(tmp_path / "v2", {"a.md": b"published"})
    assert {each.name: each.read_bytes() for each in (tmp_path / "v2").iterdir()} == {"a.md": b"published"}


def test_sto_2_leftovers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "w" / ".tmp-v2-abc").mkdir(parents=True)
    (tmp_path / "w" / ".tmp-v2-abc" / "a.md").write_bytes(b"x")
    (tmp_path / "w" / ".tmp-manifest.json-abc").write_bytes(b"x")
    (tmp_path / "w" / "tmp-report.md").write_bytes(b"x")
    removed = remove_leftovers(tmp_path)
    assert sorted(each.name for each in removed) == [".tmp-manifest.json-abc", ".tmp-v2-abc"]
    assert [each.name for each in (tmp_path / "w").iterdir()] == ["tmp-report.md"]


_WRITING_CALLS = {
    "write_text",
    "write_bytes",
    "rename",
    "copy",
    "copyfile",
    "copy2",
    "copytree",
    "move",
    "symlink_to",
    "touch",
}
_MAY_WRITE = {
    "atomic_files.py": "the one helper",
    "file_operations.py": "its steps: folders are opened to be forced to the disk",
    "data_root_lock.py": "the lock names its owner in place: it is no content and is empty after a crash at worst",
}


def _writes(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        modes = [
            each.value for each in [*node.args, *(kw.value for kw in node.keywords)] if isinstance(each, ast.Constant)
        ]
        opens_to_write = name == "open" and any(isinstance(mode, str) and set(mode) & set("wax+") for mode in modes)
        is_os_open = name == "open" and isinstance(node.func, ast.Attribute) and ast.unparse(node.func) == "os.open"
        if name in _WRITING_CALLS or opens_to_write or is_os_open:
            found.append(f"{ast.unparse(node)} (line {node.lineno})")
    return found


def test_sto_2_nothing_else_in_the_store_opens_a_file_for_writing() -> None:
    root = Path(__file__).resolve().parents[3] / "services" / "store"
    offenders = {
        path.name: found
        for path in root.rglob("*.py")
        if path.name not in _MAY_WRITE and (found := _writes(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert offenders == {}
