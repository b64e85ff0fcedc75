"""Bringing a database to the newest schema version."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, Engine, inspect, text

from services.store.domain.errors import PreconditionFailed

NEWEST: Final = "0002"


def upgrade(engine: Engine, revision: str = NEWEST) -> None:
    """Bring the database to `revision`; all steps happen in one transaction, or none.

    Raises PreconditionFailed if the database was made by a newer program.
    """
    with engine.begin() as connection:
        found = current_revision(connection)
        if found == NEWEST:
            return
        from services.store.adapters import migrate  # a store with nothing to migrate needs no Alembic

        if found is not None and found not in migrate.known_revisions():
            raise PreconditionFailed(
                f"the database has schema version {found}, made by a newer program; upgrade this one"
            )
        migrate.migrate(connection, revision)


def current_revision(connection: Connection) -> str | None:
    """Return the schema version of a database, or None if it is empty."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)
