"""${message}

Revision ID: ${up_revision}
Phase: pre | post

Rules. `pre` only adds (tables, nullable columns, indexes made CONCURRENTLY in a migration of their
own) and is run before the new release starts; the previous release must work on the result. `post`
removes what no running release uses, one release later. Locks are taken for moments only.
`usable_from` is the oldest revision whose release can use the schema after this migration: that of the
migration before if this one only adds, else the revision from which on nothing uses what it removes.
"""

from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None
usable_from = "the oldest revision whose release can use the result"


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    raise NotImplementedError("say here why it cannot be taken back, or take it back")
