"""Names of template files, and reading a folder of them.

In the repository a template lies at `<folder>/<name>.md`; in a published version, whose names are flat, at
`<folder>.<name>.md`. Both are the template `<folder>.<name>`.
"""

from collections.abc import Sequence
from pathlib import Path


def template_name(flat_file: str) -> str:
    """Return the template name of a flat file name: `agent.system.md` -> `agent.system`."""
    return flat_file.removesuffix(".md")


def file_name(name: str) -> str:
    """Return the flat file name of a template: `agent.system` -> `agent.system.md`."""
    return f"{name}.md"


def read_folder(root: Path, folders: Sequence[str]) -> dict[str, str]:
    """Return {flat file name: text} of the `.md` files in the named folders under `root`; a missing one gives none.

    Raises OSError where a file can't be read and UnicodeDecodeError where it isn't UTF-8.
    """
    return {
        f"{folder}.{path.name}": path.read_text(encoding="utf-8")
        for folder in folders
        for path in sorted((root / folder).glob("*.md"))
    }
