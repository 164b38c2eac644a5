"""How far the output of attempts is stored, which is now done while they run.

Revision ID: 0003_pre_live_logs
Phase: pre (safe while release 0.2 runs: it only adds columns that can be null)
"""

from pathlib import Path

from alembic import op

revision = "0003_pre_live_logs"
down_revision = "0002_pre_observing"
branch_labels = None
depends_on = None
usable_from = "0001_pre_baseline"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text())


def downgrade() -> None:
    raise NotImplementedError("no downgrade is needed: release 0.2 runs on this schema")
