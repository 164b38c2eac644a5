"""Helpers that define the tables' columns."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, DateTime, MetaData

metadata: Final = MetaData()

INSTANT: Final = DateTime(timezone=True)


def must(name: str, kind: object, *, key: bool = False) -> Column[object]:
    """Return a column that is not null."""
    return Column(name, kind, primary_key=key, nullable=False)  # type: ignore[arg-type]


def may(name: str, kind: object) -> Column[object]:
    """Return a column that may be null."""
    return Column(name, kind, nullable=True)  # type: ignore[arg-type]
