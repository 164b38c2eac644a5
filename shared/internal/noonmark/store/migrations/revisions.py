"""The schema revisions, and whether one is too old for this release. Reads only file names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_VERSIONS: Final = Path(__file__).parent / "versions"


def known_revisions() -> list[str]:
    """Return the revisions that this release knows, the oldest first."""
    return sorted(path.stem for path in _VERSIONS.glob("*.py"))


def too_old(current: str | None) -> bool:
    """Return whether a schema is older than this release needs.

    Args:
        current: revision of the database; None if there is none. An unknown revision is from a later release,
            whose schema this release can use.
    """
    known = known_revisions()
    return current is None or current in known[:-1]
