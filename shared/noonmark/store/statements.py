"""Named SQL: each statement that locks or moves rows lives in a file with its rationale."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import LiteralString

_FOLDER = Path(__file__).parent / "sql"


@cache
def statement(name: str) -> LiteralString:
    """Return the text of `sql/<name>.sql`, without its comments.

    Raises:
        FileNotFoundError: no statement has this name.
    """
    lines = (_FOLDER / f"{name}.sql").read_text().splitlines()
    # These files are part of the program; no input reaches them.
    return "\n".join(line for line in lines if not line.lstrip().startswith("--"))


def names() -> list[str]:
    """Return the names of all statements, sorted."""
    return sorted(path.stem for path in _FOLDER.glob("*.sql"))
