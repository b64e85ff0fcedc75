"""Alembic's entry: runs migrations on the connection that `schema.upgrade` hands over."""

from alembic import context

from services.store.adapters.tables import Base

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
