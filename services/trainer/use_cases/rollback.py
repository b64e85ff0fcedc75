"""Puts an earlier version's skills or prompts back in force as a new version (TRN-13)."""

from __future__ import annotations

from services.trainer.domain.errors import WorkspaceProblem
from services.trainer.domain.versions import Version, VersionChange
from services.trainer.domain.workspaces import Manifest
from services.trainer.use_cases.ports import Services


async def roll_back(services: Services, workspace: str, version: str, kind: str = "skills") -> tuple[Version, Manifest]:
    """Publishes the texts of `version` on top of the current one and makes that current; `kind` is skills or prompts.

    Nothing is lost: the versions in between stay. Raises WorkspaceProblem when the texts are in force already.
    """
    manifest, _ = await services.workspaces.get(workspace)
    in_force = {"skills": manifest.current.skills, "prompts": manifest.current.prompts}[kind]
    wanted = await services.versions.get(workspace, kind, version)
    current = await services.versions.get(workspace, kind, in_force)
    if wanted.texts == current.texts:
        raise WorkspaceProblem(f"{version} has the same texts as {current.version}, which is in force")
    change = VersionChange(
        kind=kind,
        parent=current.version,
        overrides={name: text for name, text in wanted.texts.items() if current.texts.get(name) != text},
        removed=tuple(sorted(current.texts.keys() - wanted.texts.keys())),
        source="rollback",
        trigger_run="",
        description=f"back to the texts of {version}",
    )
    published = await services.versions.publish(workspace, change)
    return published, await services.workspaces.set_current(workspace, {kind: published.version}, manifest.etag)
