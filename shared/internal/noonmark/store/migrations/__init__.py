"""The schema: alembic migrations, and the command that brings a database to this release.

May import: `store.database`, `store.cluster`, `store.schedules`. Start with `migrate.py`; the schema itself
is in `versions/*.sql`.
"""
