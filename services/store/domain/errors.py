"""What can go wrong in the store.

StoreError
├── InvalidRequest            a field of the request breaks a rule; nothing was changed
│   ├── InvalidName           a name is empty, too long or tries to leave its folder
│   ├── InvalidVersionFile    a file of a version has a bad name, encoding or size
│   ├── UnknownManifestKey    `current` has no such key
│   └── InvalidPageToken      the token was not made by this query
├── NotFound                  the named thing does not exist
├── AlreadyExists             the named thing exists and is never overwritten silently
│   └── PoolsAlreadyFrozen    other pools are frozen; `force` is needed
├── StaleEtag                 the manifest changed since it was read
├── StaleParent               a change was made from a version that is no longer current
├── PreconditionFailed        the state of the workspace does not allow this
│   ├── FingerprintMismatch   a checkpoint belongs to another config, other pools or prompts
│   └── PoolsMismatch         the pools on disk are not the frozen ones
├── DataRootInUse             another store process owns the data root
└── StorageFailed             the disk or the database refused; nothing was acknowledged
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class StoreError(Exception):
    """Base of every error the store raises on purpose; `field` is a request field path, or None."""

    def __init__(self, message: str, *, field: str | None = None, metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.metadata: Mapping[str, str] = dict(metadata or {})


class InvalidRequest(StoreError):
    """A field of the request breaks a rule; nothing was changed."""


class InvalidName(InvalidRequest):
    """A name is empty, too long, or could name something outside its folder."""


class InvalidVersionFile(InvalidRequest):
    """A file of a version has a bad name, another encoding than UTF-8, or is too large."""


class UnknownManifestKey(InvalidRequest):
    """The manifest's `current` has no such key."""


class InvalidPageToken(InvalidRequest):
    """The page token is damaged or belongs to another query."""

    def __init__(self) -> None:
        super().__init__("the page token does not belong to this query; start again without one", field="page_token")


class NotFound(StoreError):
    """The named thing does not exist."""

    def __init__(self, kind: str, name: str, *, field: str | None = None) -> None:
        super().__init__(f"{kind} {name!r} does not exist", field=field, metadata={"kind": kind, "name": name[:200]})


class AlreadyExists(StoreError):
    """The named thing exists already and is not overwritten."""


class PoolsAlreadyFrozen(AlreadyExists):
    """Other pools are frozen in this workspace."""

    def __init__(self, frozen_sha256: str, offered_sha256: str) -> None:
        super().__init__(
            f"pools with fingerprint {frozen_sha256[:8]} are frozen and the offered ones have {offered_sha256[:8]}; "
            "use --force to replace them (the old file is kept)",
            metadata={"frozen_sha256": frozen_sha256, "offered_sha256": offered_sha256},
        )


class StaleEtag(StoreError):
    """The manifest changed since the caller read it."""

    def __init__(self, given: str, current: str) -> None:
        super().__init__(
            f"the manifest changed since it was read (etag {given!r}, now {current!r}); read it again and retry",
            field="etag",
            metadata={"given_etag": given[:200], "current_etag": current},
        )


class StaleParent(StoreError):
    """A change was made from a version that is no longer the current one."""

    def __init__(self, field: str, given: str, current: str) -> None:
        super().__init__(
            f"{field} is {given!r}, but {current!r} is current; propose the change again from there",
            field=field,
            metadata={"given_parent": given[:200], "current": current},
        )


class PreconditionFailed(StoreError):
    """The state of the workspace does not allow this."""


class FingerprintMismatch(PreconditionFailed):
    """A checkpoint was written under another config, other pools or other prompts."""

    def __init__(self, differing: Sequence[tuple[str, str, str]]) -> None:
        listed = "; ".join(f"{key}: checkpoint {stored!r}, caller {given!r}" for key, stored, given in differing)
        super().__init__(
            f"the checkpoint does not match the caller: {listed}",
            metadata={key: f"{stored} != {given}" for key, stored, given in differing},
        )


class PoolsMismatch(PreconditionFailed):
    """The pools on disk are not those that were frozen, or rest on another baseline run."""

    def __init__(self, what: str, recorded: str, found: str) -> None:
        super().__init__(
            f"{what} differs: recorded {recorded!r}, found {found!r}; freeze the split again or restore the file",
            metadata={"what": what, "recorded": recorded, "found": found},
        )


class DataRootInUse(StoreError):
    """Another store process owns the data root."""

    def __init__(self, root: str, owner_pid: str) -> None:
        super().__init__(
            f"data root {root} is owned by another store (pid {owner_pid}); stop it or choose another root"
        )


class StorageFailed(StoreError):
    """The disk or the database refused the write; nothing was acknowledged."""
