"""Immutable versions of skills and prompts: what may be in one and how it is hashed."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Mapping, Sequence

from services.store.domain.errors import InvalidRequest, InvalidVersionFile

KINDS = ("skills", "prompts")
SOURCES = ("manual", "import", "evolution", "slow_update", "rollback")
MAX_FILE_BYTES = 1024 * 1024
_FILE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*\.md\Z")
_MAX_FILE_NAME_CHARS = 200


def text_sha256(text: str) -> str:
    """Return the SHA-256 of a text's UTF-8 bytes, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def content_sha256(file_sha256: Mapping[str, str]) -> str:
    """Return one hash over all files of a version; it depends on names and texts, not on the order given."""
    listing = "".join(f"{name}\0{file_sha256[name]}\n" for name in sorted(file_sha256))
    return hashlib.sha256(listing.encode()).hexdigest()


def checked_file_name(name: str, field: str) -> str:
    """Return `name` if it can be a file of a version; raise InvalidVersionFile otherwise."""
    if len(name) > _MAX_FILE_NAME_CHARS or not _FILE_NAME.match(name) or ".." in name:
        raise InvalidVersionFile(
            f"file name {name[:80]!r} must match [a-z0-9][a-z0-9._-]*\\.md, without '..', "
            f"in at most {_MAX_FILE_NAME_CHARS} characters",
            field=field,
        )
    return name


def normalised_text(name: str, content: str | bytes, field: str) -> str:
    """Return the text of a file with CRLF and lone CR as LF; raise InvalidVersionFile for bad encoding, NUL or size."""
    if isinstance(content, bytes):
        try:
            content = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidVersionFile(f"{name} is not UTF-8 (byte {error.start})", field=field) from error
    if "\0" in content:
        raise InvalidVersionFile(f"{name} holds a NUL character", field=field)
    text = content.replace("\r\n", "\n").replace("\r", "\n")
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise InvalidVersionFile(f"{name} is not valid Unicode", field=field) from error
    if size > MAX_FILE_BYTES:
        raise InvalidVersionFile(f"{name} has {size} bytes, at most {MAX_FILE_BYTES} are allowed", field=field)
    return text


def next_files(
    parent: Mapping[str, str],
    overrides: Mapping[str, str | bytes],
    removed: Sequence[str],
) -> dict[str, str]:
    """Return the files of the version that follows `parent`.

    Raises InvalidVersionFile for a bad file, InvalidRequest if a removed file does not exist, is also overridden, or if
    nothing would be left.
    """
    texts = {
        checked_file_name(name, f"overrides[{name[:80]!r}]"): normalised_text(
            name, content, f"overrides[{name[:80]!r}]"
        )
        for name, content in overrides.items()
    }
    for name in removed:
        if name not in parent:
            raise InvalidRequest(f"file {name[:80]!r} can't be removed: the parent has no such file", field="removed")
        if name in texts:
            raise InvalidRequest(f"file {name!r} is both overridden and removed", field="removed")
    files = {name: text for name, text in {**parent, **texts}.items() if name not in set(removed)}
    if not files:
        raise InvalidRequest("a version needs at least one file", field="overrides")
    return dict(sorted(files.items()))


def checked_kind(kind: str) -> str:
    """Return `kind` if it is `skills` or `prompts`; raise InvalidRequest otherwise."""
    if kind not in KINDS:
        raise InvalidRequest(f"version kind {kind!r} is not one of {', '.join(KINDS)}", field="kind")
    return kind


def checked_source(source: str) -> str:
    """Return `source` if a version can come from it; raise InvalidRequest otherwise."""
    if source not in SOURCES:
        raise InvalidRequest(f"version source {source!r} is not one of {', '.join(SOURCES)}", field="source")
    return source


def unified_diff(old_name: str, old: Mapping[str, str], new_name: str, new: Mapping[str, str]) -> str:
    """Return one unified diff over all files in order of name; empty when the two versions are equal."""
    return "".join(
        _file_diff(f"{old_name}/{name}", old.get(name), f"{new_name}/{name}", new.get(name))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    )


def _file_diff(old_label: str, old: str | None, new_label: str, new: str | None) -> str:
    before, after = _lines(old or ""), _lines(new or "")
    labels = ("/dev/null" if old is None else old_label, "/dev/null" if new is None else new_label)
    lines = list(difflib.unified_diff(before, after, *labels))
    if not lines:  # an empty file came or went
        lines = [f"--- {labels[0]}\n", f"+++ {labels[1]}\n"]
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    return [line + "\n" for line in text.split("\n")[:-1]] + ([last] if (last := text.rsplit("\n", 1)[-1]) else [])
