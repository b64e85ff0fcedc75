"""Public data that some tests read where it is; it is never part of the project."""

import os
from pathlib import Path

import pytest

_BESIDE_THE_CHECKOUT = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def real_data(name: str) -> Path:
    """A file or folder of the real data; skips the test with the reason where it is absent."""
    path = Path(os.environ.get("VIDEOTREE_TEST_DATA", _BESIDE_THE_CHECKOUT)) / name
    if not path.exists():
        pytest.skip(f"real data absent: {name} (set VIDEOTREE_TEST_DATA to the folder that holds it)")
    return path
