"""Model calls name the run they were made for."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema here from 0001; older calls belong to no run."""
    op.add_column("llm_calls", sa.Column("run_id", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.create_index("llm_calls_by_run", "llm_calls", ["run_id"])
