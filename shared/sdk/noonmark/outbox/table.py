"""The table `noonmark_outbox` in applications' databases, and its statements; see docs/outbox.md."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final, LiteralString

_FOLDER: Final = Path(__file__).parent / "sql"
_PLACE: Final = re.compile(r"%\((\w+)\)s")


@cache
def app_statement(name: str) -> LiteralString:
    """Return the text of `sql/<name>.sql` for psycopg, without its comments.

    Raises:
        FileNotFoundError: there is no statement with this name.
    """
    lines = (_FOLDER / f"{name}.sql").read_text().splitlines()
    # These files are part of the program and contain no input.
    return "\n".join(line for line in lines if not line.lstrip().startswith("--"))


@cache
def named_statement(name: str) -> str:
    """Return the same for SQLAlchemy's `text`, with `:name` instead of `%(name)s`."""
    return _PLACE.sub(r":\1", app_statement(name))


def create_table_sql() -> str:
    """Return the statements that create the table, for the application's migrations. Safe to repeat."""
    return app_statement("table") + ";\n"
