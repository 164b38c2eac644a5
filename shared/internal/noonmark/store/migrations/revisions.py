"""The schema revisions that this release knows, and whether it can use the schema of a database.

A migration may only add, or may remove what earlier releases need. So every migration file names in `usable_from`
the oldest revision whose release can use the schema after it. The newest of these is recorded in the database, as
the comment of the table `alembic_version`: a comment needs no column that an earlier schema does not have, and
backups keep it. From it a release can tell whether it can use a schema with migrations that it does not know.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql

from noonmark.store.database.planned_once import missing_functions

_VERSIONS: Final = Path(__file__).parent / "versions"
_RECORD: Final = "usable from revision "


def known_revisions() -> list[str]:
    """Return the revisions that this release knows, the oldest first. Reads only file names."""
    return sorted(path.stem for path in _VERSIONS.glob("*.py"))


@dataclass(frozen=True, slots=True)
class SchemaRevision:
    """The revision of a database.

    Attributes:
        current: None if the database has no schema.
        usable_from: the oldest revision whose release can use the schema; None if it is not recorded.
        lacks_functions: whether functions are missing that this release makes of its statements.
    """

    current: str | None
    usable_from: str | None
    lacks_functions: bool = False

    @property
    def is_later(self) -> bool:
        """Whether a later release migrated the database."""
        return self.current is not None and self.current not in known_revisions()

    @property
    def problem(self) -> str | None:
        """Why this release cannot use the schema, and what to do; None if it can."""
        if self.lacks_functions and self.problem_of_tables is None:
            return "the schema lacks functions of this release: run `noonmark db migrate` of this release"
        return self.problem_of_tables

    @property
    def problem_of_tables(self) -> str | None:
        """The same, whatever functions there are: they can be made in every schema whose tables can be used."""
        wanted = known_revisions()[-1]
        if self.current == wanted:
            return None
        if self.current is None:
            return f"the database has no schema, this release needs {wanted}: run `noonmark db migrate` of this release"
        if not self.is_later:
            return (
                f"the schema is at {self.current}, this release needs {wanted}:"
                " run `noonmark db migrate` of this release"
            )
        if self.usable_from is None:
            return (
                f"the schema is at {self.current}, which this release ({wanted}) does not know, and the database"
                " does not say which releases can use it: run `noonmark db migrate` of the release that made it,"
                " which records that"
            )
        if self.usable_from not in known_revisions():
            return (
                f"the schema is at {self.current} of a later release, and removed what this release ({wanted})"
                f" needs: run a release with revision {self.usable_from} or later, or restore a backup from before"
                " that migration"
            )
        return None

    @property
    def note(self) -> str | None:
        """What to know of a schema that this release can use though it does not know it; None otherwise."""
        if not self.is_later or self.problem is not None:
            return None
        return (
            f"the schema is at {self.current} of a later release; this release ({known_revisions()[-1]}) can use"
            " it, and there is nothing to migrate"
        )


def read_revision(connection: psycopg.Connection) -> SchemaRevision:
    """Read the revision of the database."""
    row = connection.execute("select to_regclass('alembic_version') is not null").fetchone()
    if row != (True,):
        return SchemaRevision(None, None)
    row = connection.execute(
        "select version_num, obj_description('alembic_version'::regclass, 'pg_class') from alembic_version"
    ).fetchone()
    current, comment = row if row is not None else (None, None)
    recorded = comment is not None and comment.startswith(_RECORD)
    usable_from = comment.removeprefix(_RECORD) if recorded else None
    return SchemaRevision(current, usable_from, lacks_functions=bool(missing_functions(connection)))


def record_usable_from(connection: psycopg.Connection, revision: str) -> None:
    """Record the oldest revision whose release can use the schema."""
    if read_revision(connection).usable_from != revision:
        comment = sql.Literal(f"{_RECORD}{revision}")
        connection.execute(sql.SQL("comment on table alembic_version is {}").format(comment))
