"""Pages of timers that also hold the next version of each.

Revision ID: 0008_pre_timer_pages
Phase: pre (safe while release 0.2 runs: how full pages are does not matter to it)
"""

from pathlib import Path

from alembic import op

revision = "0008_pre_timer_pages"
down_revision = "0007_pre_recent_outcomes"
branch_labels = None
depends_on = None
usable_from = "0001_pre_baseline"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text())


def downgrade() -> None:
    raise NotImplementedError("no downgrade is needed: release 0.2 runs on this schema")
