"""Routes of workers, pools and their backlogs. They belong to the installation and serve all namespaces."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from noonmark.api.backend.lag import LagsUnavailable
from noonmark.api.http.problems import ProblemError
from noonmark.api.http.query_parameters import PoolName
from noonmark.api.requests.routing import Caller, needs, resource
from noonmark.core.access.roles import Permission
from noonmark.schemas.api.lanes import Lane, Lanes
from noonmark.schemas.api.workers import Pool, Pools, Worker, Workers
from noonmark.schemas.problems.types import UNAVAILABLE
from noonmark.store.cluster.pools import pool_names
from noonmark.store.views import workers as worker_views

router = resource("workers")
pools_router = resource("pools")
lanes_router = resource("lanes")


@router.get("/workers")
def list_workers(
    pool: PoolName = None,
    ended: Annotated[
        bool, Query(description="Include workers that stopped, or whose lease expired.")
    ] = False,
    caller: Caller = needs(Permission.WORKERS_READ),
) -> Workers:
    """List workers with their start and their last heartbeat."""
    with caller.reading() as session:
        rows = worker_views.list_workers(session.sql, pool=pool, everyone=ended)
    return Workers(items=[Worker.model_validate(dict(row)) for row in rows])


@pools_router.get("/pools")
def list_pools(caller: Caller = needs(Permission.WORKERS_READ)) -> Pools:
    """List the pools that jobs can use, with the number of their live workers."""
    with caller.reading() as session:
        rows = worker_views.list_pools(session.sql)
    return Pools(items=[Pool.model_validate(dict(row)) for row in rows])


@lanes_router.get("/lanes")
def list_lanes(pool: PoolName = None, caller: Caller = needs(Permission.WORKERS_READ)) -> Lanes:
    """Measure the lag of intake and workers in Kafka, in messages and in seconds.

    The status is 503 if Kafka does not respond within 3 s.
    """
    with caller.reading() as session:
        names = pool_names(session.raw)
    try:
        found = caller.parts.lags.measure(names)
    except LagsUnavailable as error:
        raise ProblemError(
            UNAVAILABLE, f"Kafka does not respond: {error}", headers={"Retry-After": "2"}
        ) from error
    items = [lane for lane in found.lanes if pool is None or lane["pool"] == pool]
    return Lanes(items=[Lane.model_validate(lane) for lane in items], failed=list(found.failed))
