"""Running Alembic's migrations; imported only where a database is not at the newest schema version."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

_MIGRATIONS = Path(__file__).parent / "migrations"


def known_revisions() -> list[str]:
    """Return the schema versions this program knows, the newest first."""
    return [script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()]


def migrate(connection: Connection, revision: str) -> None:
    """Run the steps from the database's schema version to `revision`."""
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.set_main_option("path_separator", "os")
    return config
