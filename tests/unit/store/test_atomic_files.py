"""Torn writes (STO-2, QUA-12): whatever step fails, old content or new stands there, never a part.

`python -m bench.torn_writes` interrupts the store's own requests in the same ways; here it is the helper alone.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.breaking_files import ONLY_WRITES, BreakableOperations, Died, LossyDisk, Way, raise_died
from services.store.adapters.atomic_files import AtomicFiles, remove_leftovers

OLD, NEW = b"old content", b"new content, longer than the old"
STEPS_OF_A_FILE = ("write", "flush", "fsync", "replace", "fsync_folder")


@contextlib.contextmanager
def interrupted(folder: Path, at: int, way: Way) -> Iterator[AtomicFiles]:
    """Files whose step number `at` is broken; what that raises is caught."""
    aside = folder.with_name("aside")
    aside.mkdir()
    with contextlib.suppress(OSError, Died):
        yield AtomicFiles(BreakableOperations(at, way, die=raise_died, disk=LossyDisk(aside)))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def is_new(at: int, way: Way) -> bool:
    """Whether the new content stands there after the only write of a file was broken: from its replacement on."""
    done = at if way is Way.DEATH_AFTER else at - 1
    # What a loss of power leaves of a rename that was not forced to the disk is the old content.
    return done >= (5 if way is Way.POWER_CUT else 4)


@pytest.mark.parametrize(
    ("at", "way"),
    [(at, way) for at in range(1, 6) for way in Way if at == 1 or way not in ONLY_WRITES],
    ids=lambda value: STEPS_OF_A_FILE[value - 1] if isinstance(value, int) else None,
)
def test_qua_12_an_interrupted_write_leaves_the_old_content_or_the_new(root: Path, at: int, way: Way) -> None:
    path = root / "manifest.json"
    AtomicFiles().write_file(path, OLD)
    with interrupted(root, at, way) as files:
        files.write_file(path, NEW)
    assert path.read_bytes() == (NEW if is_new(at, way) else OLD)
    remove_leftovers(root)
    assert [each.name for each in root.iterdir()] == ["manifest.json"]


def test_qua_12_a_written_file_outlives_a_loss_of_power(root: Path) -> None:
    disk = LossyDisk(root.with_name("aside"))
    root.with_name("aside").mkdir()
    AtomicFiles(BreakableOperations(disk=disk)).write_file(root / "a.json", OLD)
    AtomicFiles(BreakableOperations(disk=disk)).write_file(root / "a.json", NEW)
    disk.lose()
    assert (root / "a.json").read_bytes() == NEW


def test_qua_12_a_file_that_is_not_forced_to_the_disk_would_be_found_torn(root: Path) -> None:
    root.with_name("aside").mkdir()
    disk = LossyDisk(root.with_name("aside"))
    operations = BreakableOperations(disk=disk)
    with (root / "careless.json").open("xb") as handle:
        operations.write(handle, NEW)
        operations.flush(handle)
    disk.lose()
    assert (root / "careless.json").read_bytes() == NEW[: len(NEW) // 2]


@pytest.mark.parametrize("at", range(1, 6), ids=STEPS_OF_A_FILE)
def test_qua_12_a_failed_first_write_leaves_no_file(root: Path, at: int) -> None:
    path = root / "pools.json"
    with interrupted(root, at, Way.ERROR) as files:
        files.write_file(path, NEW)
    assert (path.read_bytes() if path.exists() else None) == (NEW if at == 5 else None)
    assert not list(root.glob(".tmp-*"))


def steps_of(action: str, files: dict[str, bytes], tmp_path: Path) -> int:
    """How many steps there are to break, counted on another folder."""
    operations = BreakableOperations()
    (tmp_path / "counted").mkdir()
    getattr(AtomicFiles(operations), action)(tmp_path / "counted" / "v1", files)
    return len(operations.steps)


@pytest.mark.parametrize("way", Way)
def test_qua_12_an_interrupted_publication_shows_the_whole_version_or_none(tmp_path: Path, way: Way) -> None:
    files = {"a.md": b"aaaa", "b.md": b"bbbb", "meta.json": b"{}"}
    seen = set()
    for at in range(1, steps_of("publish_folder", files, tmp_path) + 1):
        root = tmp_path / str(at) / "root"
        root.mkdir(parents=True)
        with interrupted(root, at, way) as atomic:
            atomic.publish_folder(root / "v1", files)
        remove_leftovers(root)
        there = {each.name: each.read_bytes() for each in (root / "v1").iterdir()} if (root / "v1").exists() else {}
        assert there in ({}, files), at
        assert [each.name for each in root.iterdir()] == (["v1"] if there else [])
        seen.add(bool(there))
    assert seen == {False, True} or way is Way.POWER_CUT  # whose rename is the last step


@pytest.mark.parametrize("way", Way)
def test_qua_12_an_interrupted_addition_adds_all_its_files_or_none(tmp_path: Path, way: Way) -> None:
    before = {"kept.jpg": b"kept", "a.jpg": b"old"}
    added = {"a.jpg": b"new", "b.jpg": b"bbbb", "c.jpg": b"cccc"}
    seen = set()
    for at in range(1, steps_of("add_files", added, tmp_path) + 1):
        root = tmp_path / str(at) / "root"
        root.mkdir(parents=True)
        AtomicFiles().add_files(root / "frames", before)
        with interrupted(root, at, way) as atomic:
            atomic.add_files(root / "frames", added)
        remove_leftovers(root)
        AtomicFiles().finish_additions(root)
        there = {each.name: each.read_bytes() for each in (root / "frames").iterdir()}
        assert there in (before, {**before, **added}), at
        assert [each.name for each in root.iterdir()] == ["frames"]
        seen.add(there != before)
    assert seen == {False, True}


def replace_folder(files: AtomicFiles, root: Path) -> None:
    """Make a new folder where one stands, as a workspace is replaced."""
    building = files.hidden_folder(root / "w")
    (building / "new.db").write_bytes(b"new")
    files.sync_tree(building)
    files.install_folder(building, root / "w")


@pytest.mark.parametrize("way", [way for way in Way if way not in ONLY_WRITES])
def test_qua_12_an_interrupted_replacement_leaves_the_old_folder_or_the_new(tmp_path: Path, way: Way) -> None:
    counting, seen = BreakableOperations(), []
    AtomicFiles().publish_folder(tmp_path / "counted" / "w", {"old.db": b"old"})
    replace_folder(AtomicFiles(counting), tmp_path / "counted")
    assert [each.name for each in (tmp_path / "counted").iterdir()] == ["w"]
    for at in range(1, len(counting.steps) + 1):
        root = tmp_path / str(at) / "root"
        AtomicFiles().publish_folder(root / "w", {"old.db": b"old"})
        with interrupted(root, at, way) as atomic:
            replace_folder(atomic, root)
        if way is Way.ERROR:  # the process goes on, and finds one of them without a start
            assert (root / "w").exists(), at
        AtomicFiles().finish_replacements(root)
        remove_leftovers(root)
        there = {each.name: each.read_bytes() for each in (root / "w").iterdir()}
        assert there in ({"old.db": b"old"}, {"new.db": b"new"}), at
        assert [each.name for each in root.iterdir()] == ["w"]
        seen.append("new.db" in there)
    assert seen == sorted(seen)
    assert set(seen) == {False, True} or way is Way.POWER_CUT  # whose renames are forced by the last step


def test_qua_12_what_a_failed_replacement_left_does_not_hinder_the_next(tmp_path: Path) -> None:
    AtomicFiles().publish_folder(tmp_path / "w", {"old.db": b"old"})
    (tmp_path / ".new-w").mkdir()
    (tmp_path / ".new-w" / "stale.db").touch()
    replace_folder(AtomicFiles(), tmp_path)
    assert [each.name for each in (tmp_path / "w").iterdir()] == ["new.db"]
    assert [each.name for each in tmp_path.iterdir()] == ["w"]


def test_an_interrupted_addition_is_finished_before_the_next_to_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "frames"
    files = {"a.jpg": b"first", "b.jpg": b"first"}
    counting = BreakableOperations()
    AtomicFiles(counting).add_files(tmp_path / "other", files)
    second = [at for at, step in enumerate(counting.steps, start=1) if step == "replace"][1]
    with pytest.raises(OSError, match="Input/output"):
        AtomicFiles(BreakableOperations(second)).add_files(folder, files)
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
