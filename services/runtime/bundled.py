"""Where the prompts and examples lie that come with the project."""

from __future__ import annotations

from pathlib import Path

_PACKAGE_ROOT = Path(__file__).resolve().parents[1]


def bundled_path(name: str) -> Path:
    """The folder `name` (`prompts`, `examples`): `services/bundled/` in a wheel, the repository's root in a checkout.

    Raises FileNotFoundError when the installation holds no such folder.
    """
    candidates = (_PACKAGE_ROOT / "bundled" / name, _PACKAGE_ROOT.parent / name)
    for path in candidates:
        if path.is_dir():
            return path
    tried = " and ".join(str(path) for path in candidates)
    raise FileNotFoundError(f"this installation of videotree holds no folder {name!r}: looked at {tried}")
