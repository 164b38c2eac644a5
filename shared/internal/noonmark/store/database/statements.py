"""Named SQL: each statement that locks or moves rows is in its own file, with its rationale."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final, LiteralString

_STORE: Final = Path(__file__).parents[1]


@cache
def _files() -> dict[str, Path]:
    """Return the file of each statement; every package of the store has its own folder `sql`."""
    return {path.stem: path for path in sorted(_STORE.glob("*/sql/*.sql"))}


@cache
def statement(name: str) -> LiteralString:
    """Return the text of the file `<name>.sql`, without its comments. Names are unique in the store.

    Raises:
        FileNotFoundError: no statement has this name.
    """
    if name not in _files():
        raise FileNotFoundError(f"there is no file {name}.sql in any folder sql of the store")
    lines = _files()[name].read_text().splitlines()
    # These files are part of the program; no input reaches them.
    return "\n".join(line for line in lines if not line.lstrip().startswith("--"))


def names() -> list[str]:
    """Return the names of all statements, sorted."""
    return sorted(_files())
