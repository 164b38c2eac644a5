"""Overlap slots without a row: a timer says which run holds the slot of its job.

Revision ID: 0009_pre_kept_slots
Phase: pre (safe while release 0.2 runs: its claims and changes of timers write the rows that it needs by triggers)
"""

from pathlib import Path

from alembic import op

revision = "0009_pre_kept_slots"
down_revision = "0008_pre_timer_pages"
branch_labels = None
depends_on = None
usable_from = "0001_pre_baseline"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text().replace("%", "%%"))


def downgrade() -> None:
    raise NotImplementedError("no downgrade is needed: release 0.2 runs on this schema")
