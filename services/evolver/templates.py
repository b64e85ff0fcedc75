"""The templates that belong to the engine: every one that the evolver renders."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from services.evolver.domain.stages import JUDGE_STAGES
from services.evolver.domain.targets import TargetKind, UpdateMode, template_of
from services.runtime.bundled import bundled_path
from services.runtime.config import ConfigError
from services.templates import MissingTemplatesError, TemplateFormatError, TemplateSet, read_folder

FOLDERS = ("diagnose", "evolve", "slow")
REQUIRED = (
    *(stage.template for stage in JUDGE_STAGES),
    "diagnose.score",
    *(template_of(kind, UpdateMode.PATCH) for kind in TargetKind),
    template_of(TargetKind.SKILL, UpdateMode.REWRITE),
    "evolve.rank",
    "evolve.consolidate",
    "evolve.retry",
    "slow.momentum",
)


def engine_files(prompts_dir: Path | None) -> Mapping[str, str]:
    """Return {flat file name: text} of the engine's templates in `prompts_dir`, or of the bundled ones for None.

    Raises ConfigError where the folder can't be read.
    """
    try:
        return read_folder(prompts_dir or bundled_path("prompts"), FOLDERS)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"prompts_dir: the templates can't be read: {error}") from error


def load_templates(files: Mapping[str, str]) -> TemplateSet:
    """Return all required templates; raises ConfigError listing every one that is missing or empty (EVO-1)."""
    try:
        return TemplateSet.load(files, REQUIRED)
    except (MissingTemplatesError, TemplateFormatError) as error:
        raise ConfigError(f"prompts_dir: {error}") from error


def diagnosis_sha256(files: Mapping[str, str]) -> str:
    """Return the hex SHA-256 over the diagnosis templates, part of each diagnosis's fingerprint."""
    parts = [f"{name}\n{text}" for name, text in sorted(files.items()) if name.startswith("diagnose.")]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
