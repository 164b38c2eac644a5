"""Named SQL: each statement that locks or moves rows is in its own file, with its rationale."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final, LiteralString

_STORE: Final = Path(__file__).parents[1]


@cache
def _texts() -> dict[str, LiteralString]:
    """Read all statements; every package of the store has its own folder `sql`.

    All at the first use, which is at the start of a service: later, the process may have no free descriptor.
    """
    return {path.stem: _without_comments(path) for path in sorted(_STORE.glob("*/sql/*.sql"))}


def _without_comments(path: Path) -> LiteralString:
    # These files are part of the program; no input reaches them.
    return "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("--"))


def statement(name: str) -> LiteralString:
    """Return the text of the file `<name>.sql`, without its comments. Names are unique in the store.

    Raises:
        FileNotFoundError: no statement has this name.
    """
    try:
        return _texts()[name]
    except KeyError:
        raise FileNotFoundError(f"there is no file {name}.sql in any folder sql of the store") from None


def names() -> list[str]:
    """Return the names of all statements, sorted."""
    return sorted(_texts())
