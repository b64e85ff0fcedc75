"""Line ends and fingerprints of skill and prompt text."""

import hashlib


def normalise_newlines(text: str) -> str:
    """Return `text` with CRLF and lone CR turned into LF; nothing else changes."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def text_sha256(text: str) -> str:
    """Return the hex SHA-256 of `text` in UTF-8 after LF normalisation, so CRLF and LF copies are one text."""
    return hashlib.sha256(normalise_newlines(text).encode("utf-8", "surrogatepass")).hexdigest()
