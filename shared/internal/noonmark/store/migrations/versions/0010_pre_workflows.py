"""Workflows: their compiled tasks, and the state of those that are open.

Revision ID: 0010_pre_workflows
Phase: pre (safe while release 0.2 runs: it reads and writes none of this, and workflows are accepted only once all can run them)
"""

from pathlib import Path

from alembic import op

revision = "0010_pre_workflows"
down_revision = "0009_pre_kept_slots"
branch_labels = None
depends_on = None
usable_from = "0001_pre_baseline"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text().replace("%", "%%"))


def downgrade() -> None:
    raise NotImplementedError("no downgrade is needed: release 0.2 runs on this schema")
