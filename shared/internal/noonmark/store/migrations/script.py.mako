"""${message}

Revision ID: ${up_revision}
Phase: pre | post

Rules. `pre` only adds (tables, nullable columns, indexes made CONCURRENTLY in a migration of their
own) and is run before the new release starts; the previous release must work on the result. `post`
removes what no running release uses, one release later. Locks are taken for moments only.
"""

from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    raise NotImplementedError("say here why it cannot be taken back, or take it back")
