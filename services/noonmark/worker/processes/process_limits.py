"""The resource limits of this process: which there are, and which a handler has changed."""

from __future__ import annotations

import resource
from typing import Final

LIMIT_NAMES: Final = {
    # Of two names of a limit, RLIMIT_OFILE is the older one.
    getattr(resource, name): name
    for name in sorted(dir(resource), reverse=True)
    if name.startswith("RLIMIT_")
}
"""All limits of this platform, by their number."""

Limits = dict[int, tuple[int, int]]
"""Soft and hard limit by number."""


def read_limits() -> Limits:
    """Return all limits as they are now."""
    return {number: resource.getrlimit(number) for number in sorted(LIMIT_NAMES)}


def changed_limits(before: Limits) -> list[int]:
    """Return the numbers of the limits that are no longer as they were."""
    return [number for number, limit in before.items() if resource.getrlimit(number) != limit]
