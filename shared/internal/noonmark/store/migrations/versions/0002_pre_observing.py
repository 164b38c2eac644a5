"""Tables of the observer: alerts, deliveries, and statistics of jobs.

Revision ID: 0002_pre_observing
Phase: pre (safe while release 0.1 runs: it only adds)
"""

from pathlib import Path

from alembic import op

revision = "0002_pre_observing"
down_revision = "0001_pre_baseline"
branch_labels = None
depends_on = None
usable_from = "0001_pre_baseline"


def upgrade() -> None:
    tables = Path(__file__).with_suffix(".sql")
    for script in (tables, tables.with_name(f"{tables.stem}_writes.sql")):
        op.get_bind().exec_driver_sql(script.read_text().replace("%", "%%"))


def downgrade() -> None:
    raise NotImplementedError("no downgrade is needed: release 0.1 runs on this schema")
