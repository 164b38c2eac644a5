"""Workers and members say which formats they read.

Revision ID: 0006_pre_capabilities
Phase: pre (safe while release 0.2 runs: it leaves the new columns at their defaults)
"""

from pathlib import Path

from alembic import op

revision = "0006_pre_capabilities"
down_revision = "0005_pre_service_roles"
branch_labels = None
depends_on = None
usable_from = "0001_pre_baseline"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text())


def downgrade() -> None:
    raise NotImplementedError("no downgrade is needed: release 0.2 runs on this schema")
