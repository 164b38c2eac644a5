"""The outcomes of a job in the last hour, in its statistics.

Revision ID: 0007_pre_recent_outcomes
Phase: pre (safe while release 0.2 runs: it leaves the new column as it is, and still has its table)
"""

from pathlib import Path

from alembic import op

revision = "0007_pre_recent_outcomes"
down_revision = "0006_pre_capabilities"
branch_labels = None
depends_on = None
usable_from = "0001_pre_baseline"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text())


def downgrade() -> None:
    raise NotImplementedError("no downgrade is needed: release 0.2 runs on this schema")
