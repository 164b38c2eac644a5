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
usable_from = "0001_pre_baseline"


def upgrade() -> None:
    tables = Path(__file__).with_suffix(".sql")
    for script in (tables, tables.with_stem(f"{tables.stem}_access")):
        op.get_bind().exec_driver_sql(script.read_text().replace("%", "%%"))


def downgrade() -> None:
    raise NotImplementedError("the first schema cannot be downgraded: drop the database instead")
