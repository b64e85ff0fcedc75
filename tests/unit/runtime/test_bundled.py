from __future__ import annotations

from pathlib import Path

import pytest

from services.runtime import bundled


def test_in_a_checkout_the_folders_of_the_repository_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "_PACKAGE_ROOT", tmp_path / "services")
    (tmp_path / "prompts").mkdir()
    assert bundled.bundled_path("prompts") == tmp_path / "prompts"


def test_in_a_wheel_the_bundled_copy_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "_PACKAGE_ROOT", tmp_path / "services")
    for folder in ("prompts", "services/bundled/prompts"):
        (tmp_path / folder).mkdir(parents=True)
    assert bundled.bundled_path("prompts") == tmp_path / "services/bundled/prompts"


def test_an_absent_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "_PACKAGE_ROOT", tmp_path / "services")
    with pytest.raises(FileNotFoundError, match="examples"):
        bundled.bundled_path("examples")
