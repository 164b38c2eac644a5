"""Quotas of namespaces: how many recurring jobs they may have that are not cancelled."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import psycopg

from noonmark.store.database.statements import statement
from noonmark.store.jobs.requests import Reason, Result, rejected


class QuotaRoom(NamedTuple):
    """A quota, and how many more jobs it lets in."""

    most: int
    free: int


def read_quotas(connection: psycopg.Connection, namespaces: Collection[str]) -> dict[str, QuotaRoom]:
    """Lock the quotas of namespaces until the open transaction ends, and count what they still let in.

    Args:
        connection: in a transaction at READ COMMITTED.
        namespaces: those without a quota are left out of the answer.
    """
    quotas = connection.execute(statement("lock_quotas"), {"names": sorted(namespaces)}).fetchall()
    if not quotas:
        return {}
    counted = connection.execute(
        statement("count_quota_jobs"),
        {"names": [name for name, _ in quotas], "most": [most for _, most in quotas]},
    ).fetchall()
    most_of: dict[str, int] = dict(quotas)
    return {name: QuotaRoom(most_of[name], most_of[name] - count) for name, count in counted}


def over_quota(namespace: str, quota: QuotaRoom) -> Result:
    """Make the answer to a job that is one too many."""
    return rejected(
        Reason.QUOTA,
        "",
        f"namespace {namespace!r} may have {quota.most:,} recurring jobs, and has no room for another",
        "cancel jobs that are not needed, or ask an admin for a higher max_jobs",
    )
