"""Bringing a database to the newest schema version (Alembic)."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect, text

from services.store.domain.errors import PreconditionFailed

_MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring the database to `revision`; all steps happen in one transaction, or none.

    Raises PreconditionFailed if the database was made by a newer program.
    """
    config = _config()
    with engine.begin() as connection:
        found = current_revision(connection)
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        if found is not None and found not in known:
            raise PreconditionFailed(
                f"the database has schema version {found}, made by a newer program; upgrade this one"
            )
        if found is None or found != ScriptDirectory.from_config(config).get_current_head():
            config.attributes["connection"] = connection
            command.upgrade(config, revision)


def current_revision(connection: Connection) -> str | None:
    """Return the schema version of a database, or None if it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.set_main_option("path_separator", "os")
    return config
