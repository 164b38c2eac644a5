"""The list of plants: each puts one blocker into a scene and says what is to be answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from tests.integration.why.scene import Scene

from noonmark.core.why.answers import Blocker

Planted = tuple[UUID, Blocker, dict[str, Any], str]
"""What is asked about, and what the first answer is to be: code, facts among others, sentence."""

Plant = Callable[[Scene], Planted]

PLANTS: list[Plant] = []


def plant(function: Plant) -> Plant:
    """Put a plant on the list."""
    PLANTS.append(function)
    return function
