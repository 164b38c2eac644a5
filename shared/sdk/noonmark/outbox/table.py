"""The table `noonmark_outbox` of applications' databases, and the statements on it; see docs/outbox.md."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final, LiteralString

_FOLDER: Final = Path(__file__).parent / "sql"
_PLACE: Final = re.compile(r"%\((\w+)\)s")


@cache
def app_statement(name: str) -> LiteralString:
    """Return the text of `sql/<name>.sql`, without its comments, as psycopg takes it.

    Raises:
        FileNotFoundError: no statement has this name.
    """
    lines = (_FOLDER / f"{name}.sql").read_text().splitlines()
    # These files are part of the program; no input reaches them.
    return "\n".join(line for line in lines if not line.lstrip().startswith("--"))


@cache
def named_statement(name: str) -> str:
    """Return the same with `:name` in place of `%(name)s`, as SQLAlchemy's `text` takes it."""
    return _PLACE.sub(r":\1", app_statement(name))


def create_table_sql() -> str:
    """Return the statements that make the table, for the application's own migrations. Safe to repeat."""
    return app_statement("table") + ";\n"
