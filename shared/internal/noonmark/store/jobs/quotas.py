"""Quotas of namespaces: the maximum number of recurring jobs that are not cancelled."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import psycopg

from noonmark.store.database.statements import statement
from noonmark.store.jobs.requests import Reason, Result, rejected


class QuotaUsage(NamedTuple):
    """A quota, and how many more jobs it admits."""

    most: int
    free: int


def read_quotas(connection: psycopg.Connection, namespaces: Collection[str]) -> dict[str, QuotaUsage]:
    """Lock the quotas of namespaces until the transaction ends, and count how many jobs they still admit.

    Args:
        connection: a connection in a transaction at READ COMMITTED.
        namespaces: names of namespaces; the result leaves out those without a quota.
    """
    quotas = connection.execute(statement("lock_quotas"), {"names": sorted(namespaces)}).fetchall()
    if not quotas:
        return {}
    counted = connection.execute(
        statement("count_quota_jobs"),
        {"names": [name for name, _ in quotas], "most": [most for _, most in quotas]},
    ).fetchall()
    most_of: dict[str, int] = dict(quotas)
    return {name: QuotaUsage(most_of[name], most_of[name] - count) for name, count in counted}


def over_quota(namespace: str, quota: QuotaUsage) -> Result:
    """Return the result of a job that exceeds the quota."""
    return rejected(
        Reason.QUOTA,
        "",
        f"namespace {namespace!r} has reached its quota of {quota.most:,} recurring jobs",
        "cancel jobs that are not needed, or ask an admin for a higher max_jobs",
    )
