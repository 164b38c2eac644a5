"""Finds references to secrets in documents. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

SCHEME: Final = "secret://"


def has_references(value: Any) -> bool:
    """Return whether any string in the value refers to a secret, well formed or not."""
    if isinstance(value, str):
        return SCHEME in value and (value.startswith(SCHEME) or "${secret://" in value)
    if isinstance(value, Mapping):
        return any(map(has_references, value.values()))
    return isinstance(value, list | tuple) and any(map(has_references, value))
