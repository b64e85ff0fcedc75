"""Publishing a version inside a transaction (STO-3).

The folder is made first and the row is committed afterwards. A folder whose row was never committed is unfinished work:
the next publication of that number replaces it, and the next start removes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.store.domain.errors import NotFound, PreconditionFailed
from services.store.domain.fingerprints import readable_json
from services.store.domain.names import version_name
from services.store.domain.rows import checked_row
from services.store.domain.version_content import (
    checked_kind,
    checked_source,
    content_sha256,
    next_files,
    text_sha256,
)
from services.store.use_cases.ports import Folder, LedgerReader, LedgerTransaction, Query, Row

META_FILE = "meta.json"


@dataclass(frozen=True, slots=True)
class VersionChange:
    """What to publish: a parent (empty only for the first version) with some files replaced or removed."""

    kind: str
    parent: str
    overrides: Mapping[str, str]
    removed: Sequence[str]
    source: str
    trigger_run: str
    description: str


def publish(transaction: LedgerTransaction, files: Folder, change: VersionChange, now: str) -> tuple[Row, bool]:
    """Return the row of the new version and True, or the parent's row and False when nothing changed.

    Raises NotFound for an unknown parent, InvalidRequest for a file that may not be in a version.
    """
    checked_kind(change.kind)
    checked_source(change.source)
    parent = version_row(transaction, change.kind, change.parent, "change.parent") if change.parent else None
    old_texts = version_texts(files, parent) if parent else {}
    texts = next_files(old_texts, change.overrides, change.removed)
    file_sha256 = {name: text_sha256(text) for name, text in texts.items()}
    if parent is not None and file_sha256 == parent["file_sha256"]:
        return parent, False
    number = 1 + last_number(transaction, change.kind)
    row: Row = {
        "kind": change.kind,
        "number": number,
        "version": f"v{number}",
        "parent": change.parent,
        "source": change.source,
        "trigger_run": change.trigger_run,
        "description": change.description,
        "created_time": now,
        "file_sha256": file_sha256,
        "sha256": content_sha256(file_sha256),
    }
    checked_row("versions", row, "change")
    files.publish(f"{change.kind}/v{number}", {**_encoded(texts), META_FILE: _meta(row)})
    transaction.upsert("versions", [row])
    return row, True


def version_row(reader: LedgerReader, kind: str, version: str, field: str) -> Row:
    """Return the row of a version; raises NotFound, or InvalidName for what is no version name."""
    number = int(version_name(version, field)[1:])
    row = reader.get("versions", {"kind": checked_kind(kind), "number": number})
    if row is None:
        raise NotFound(f"{kind} version", version, field=field)
    return row


def version_texts(files: Folder, row: Row) -> dict[str, str]:
    """Return the texts of a version; raises PreconditionFailed if a published file was changed or removed on disk."""
    texts: dict[str, str] = {}
    for name, sha256 in row["file_sha256"].items():
        at = f"{row['kind']}/{row['version']}/{name}"
        content = files.read(at)
        text = None if content is None else content.decode("utf-8", errors="replace")
        if text is None or text_sha256(text) != sha256:
            raise PreconditionFailed(f"{at} was changed on disk after it was published; restore it from a backup")
        texts[name] = text
    return texts


def last_number(reader: LedgerReader, kind: str) -> int:
    """Return the number of the newest version of a kind, 0 if there is none."""
    rows = reader.find(Query("versions", equal={"kind": kind}, columns=("number",)))
    return int(rows[-1]["number"]) if rows else 0


def _encoded(texts: Mapping[str, str]) -> dict[str, bytes]:
    return {name: text.encode() for name, text in texts.items()}


def _meta(row: Row) -> bytes:
    return readable_json({name: value for name, value in row.items() if name != "number"}).encode()
