"""Fingerprints that tie a checkpoint to what it was made under (TRN-11). Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from services.skills import text_sha256


def fingerprint(value: object) -> str:
    """sha256 (hex) of the canonical JSON of `value`: equal contents with keys in another order are one."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def config_fingerprints(settings: Mapping[str, object]) -> dict[str, str]:
    """One fingerprint per setting, keyed `config.<name>`, so that a refusal can name what changed."""
    return {f"config.{name}": fingerprint(value) for name, value in sorted(settings.items())}


def prompts_fingerprint(files: Mapping[str, str]) -> str:
    """The fingerprint of the prompts in force (file name to text), whatever the version that holds them is called."""
    return fingerprint({name: text_sha256(text) for name, text in files.items()})
