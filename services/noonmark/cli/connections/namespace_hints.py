"""What is told of a namespace that may be misspelt."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noonmark.client import Client


def without_jobs(client: Client, name: str) -> str | None:
    """Return a hint where no recurring job is in a namespace, with a name that may be meant; else None.

    Of `default` there is nothing to say: nobody misspelt it.
    """
    from noonmark.store.namespaces.namespaces import name_hint  # noqa: PLC0415 - not needed to show help

    if name == "default":
        return None
    spaces = [row["name"] for row in client.namespaces.list()]
    if name in spaces and client.namespaces.get(name)["recurring_jobs"]:
        return None
    return name_hint(name, spaces)
