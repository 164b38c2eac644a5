"""The first schema.

Revision ID: 0001_pre_baseline
Phase: pre (safe while the previous release runs: there is none)
"""

from pathlib import Path

from alembic import op

revision = "0001_pre_baseline"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text().replace("%", "%%"))


def downgrade() -> None:
    raise NotImplementedError("the first schema is not taken back: drop the database instead")
