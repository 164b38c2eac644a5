"""Which schemas there have been, and whether one is too old for this release. Reads file names alone."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_VERSIONS: Final = Path(__file__).parent / "versions"


def known_revisions() -> list[str]:
    """Return the revisions that this release knows, the oldest first."""
    return sorted(path.stem for path in _VERSIONS.glob("*.py"))


def too_old(current: str | None) -> bool:
    """Tell whether a schema lacks what this release needs.

    Args:
        current: revision of the database. One that this release does not know is of a later release,
            whose schema this one can work with; None: no revision is noted.
    """
    known = known_revisions()
    return current is None or current in known[:-1]
