"""A later release, as far as a database shows it: the migrations of this one and another."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest import mock

import psycopg

from noonmark.store.migrations import migrate, revisions

ADDS: str = """
alter table runs add column later_hint text;
alter table jobs add column later_owner text default 'nobody';
create table later_things (id uuid primary key, job_id uuid not null);
create index on later_things (job_id);
"""
REMOVES: str = "alter table jobs drop column handler cascade;"
REVISION: str = "0900_later"


def migrate_later(dsn: str, folder: Path, statements: str) -> None:
    """Run `migrate` of a release whose last migration executes these statements.

    Args:
        dsn: of the database.
        folder: an empty one, for the migrations.
        statements: `ADDS` or `REMOVES`.
    """
    copy = folder / "migrations"
    shutil.copytree(revisions._VERSIONS.parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    last = revisions.known_revisions()[-1]
    usable_from = REVISION if statements == REMOVES else "0001_pre_baseline"
    (copy / "versions" / f"{REVISION}.py").write_text(
        f"""from alembic import op

revision = "{REVISION}"
down_revision = "{last}"
branch_labels = None
depends_on = None
usable_from = "{usable_from}"


def upgrade() -> None:
    op.get_bind().exec_driver_sql({statements!r})
""",
        encoding="utf-8",
    )
    with (
        mock.patch.object(migrate, "_MIGRATIONS", copy),
        mock.patch.object(revisions, "_VERSIONS", copy / "versions"),
    ):
        migrate.migrate(dsn)
    with psycopg.connect(dsn) as connection:
        assert revisions.read_revision(connection) == revisions.SchemaRevision(REVISION, usable_from)
