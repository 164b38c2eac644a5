"""Describes the values that a setting accepts, for messages and for docs/settings.md."""

from __future__ import annotations

from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo


def values_of(info: FieldInfo) -> str:
    """Describe the accepted values, from the type of the setting and its limits."""
    if get_origin(info.annotation) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(info.annotation) if value)
    if get_origin(info.annotation) is tuple:
        return "a list with commas"
    limits = {
        name: getattr(item, name)
        for item in info.metadata
        for name in ("gt", "ge", "le", "pattern")
        if hasattr(item, name)
    }
    if "pattern" in limits:
        return f"`{limits['pattern']}`"
    low = f"above {limits['gt']}" if "gt" in limits else f"from {limits['ge']}" if "ge" in limits else ""
    high = f"to {limits['le']}" if "le" in limits else ""
    return " ".join(part for part in (low, high) if part) or "text"


def wanted(info: FieldInfo) -> str:
    """Describe the accepted values as part of a sentence."""
    values = values_of(info).replace("`", "")
    if get_origin(info.annotation) is Literal:
        return f"one of {values}"
    if info.annotation is int:
        return f"a whole number {values}"
    if info.annotation is float:
        return f"a number {values}"
    return f"text that matches {values}" if values.startswith("^") else values
