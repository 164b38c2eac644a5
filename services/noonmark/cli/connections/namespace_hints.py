"""Hints about namespaces whose name may be misspelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noonmark.client import Client


def without_jobs(client: Client, name: str) -> str | None:
    """Return a hint with a similar name if a namespace has no recurring jobs; else None.

    There is no hint for `default`, the namespace of commands that name none.
    """
    from noonmark.store.namespaces.namespaces import name_hint  # noqa: PLC0415 - not needed to show help

    if name == "default":
        return None
    spaces = [row["name"] for row in client.namespaces.list()]
    if name in spaces and client.namespaces.get(name)["recurring_jobs"]:
        return None
    return name_hint(name, spaces)
