"""What may be stored as a frame."""

from __future__ import annotations

from services.store.domain.errors import InvalidRequest

MAX_FRAME_BYTES = 8 * 1024 * 1024
# ITU-T T.81, annex B: start of image followed by another marker, and end of image.
_BEGINNING, _END = b"\xff\xd8\xff", b"\xff\xd9"


def require_jpeg(content: bytes, field: str) -> None:
    """Raise InvalidRequest unless the bytes begin and end as a JPEG picture does and are at most 8 MiB."""
    if len(content) > MAX_FRAME_BYTES:
        raise InvalidRequest(f"{field} is larger than 8 MiB", field=field)
    if not content.startswith(_BEGINNING):
        raise InvalidRequest(f"{field} is no JPEG picture", field=field)
    if not content.endswith(_END):
        raise InvalidRequest(f"{field} is a JPEG picture that was cut off", field=field)
