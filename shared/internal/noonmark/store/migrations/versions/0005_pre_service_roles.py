"""A function with which a service that does not own the tables drops a day of the ledger.

Revision ID: 0005_pre_service_roles
Phase: pre (safe while release 0.2 runs: it only adds a function)
"""

from pathlib import Path

from alembic import op

revision = "0005_pre_service_roles"
down_revision = "0004_pre_readable_json"
branch_labels = None
depends_on = None
usable_from = "0001_pre_baseline"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text().replace("%", "%%"))


def downgrade() -> None:
    raise NotImplementedError("no downgrade is needed: release 0.2 runs on this schema")
