"""One credential with many slow requests: another is served meanwhile, and what is too much is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace

import psycopg
from tests.integration.api.test_limits_of_requests import problem
from tests.integration.store.world import World
from tests.support.asgi import Caller, calling
from tests.support.cluster import wait_until

from noonmark.api.app import build_app
from noonmark.api.backend.context import ApiContext
from noonmark.api.backend.request_slots import RequestSlots
from noonmark.auth.authenticator import Authenticator
from noonmark.settings import Settings

SLOW, QUICK = "/v1/calendars", "/v1/limits"
SERVED = 3
"""Of the four connections of these tests, those that one credential uses."""


@contextmanager
def locked(world: World) -> Iterator[None]:
    """Requests about calendars wait for this session."""
    session = world.another()
    session.execute("set idle_in_transaction_session_timeout = 0")
    with session.transaction():
        session.execute("lock table calendars in access exclusive mode")
        yield


def waiting(world: World) -> int:
    return world.value("select count(*) from pg_locks where not granted and database is not null")


def test_one_credential_leaves_threads_and_connections_to_others(
    call: Caller, token: Callable[..., str], world: World
) -> None:
    greedy, other = token("admin"), token("viewer")
    with ThreadPoolExecutor(60) as pool:
        with locked(world):
            slow = [pool.submit(call, "GET", SLOW, key=greedy) for _ in range(50)]
            wait_until(lambda: waiting(world) == SERVED, "its requests to wait for the lock", 20)

            assert call("GET", QUICK, key=other).status == 200
            assert waiting(world) == SERVED
        answers = [request.result() for request in slow]

    assert {answer.status for answer in answers} == {200}


def test_requests_beyond_those_that_may_wait_are_refused_and_not_audited(
    parts: ApiContext,
    settings: Settings,
    token: Callable[..., str],
    world: World,
    database: psycopg.Connection,
) -> None:
    greedy, other = token("admin"), token("admin")
    small = replace(parts, slots=RequestSlots(1, max_waiting=0))
    with (
        closing(Authenticator(settings.dsn, settings)) as authenticator,
        calling(build_app(small, authenticator)) as call,
        ThreadPoolExecutor(1) as pool,
    ):
        with locked(world):
            slow = pool.submit(call, "GET", SLOW, key=greedy)
            wait_until(lambda: waiting(world) == 1, "its request to wait for the lock", 20)

            for method, path, body in [("GET", QUICK, None), ("PUT", f"{QUICK}/x", {"slots": 1})]:
                answer = call(method, path, key=greedy, body=body)
                told = problem(answer, 429, "too-many-requests")
                assert told["detail"].startswith("the credential has too many requests in progress")
                assert int(answer.headers["retry-after"]) > 0
            assert call("GET", QUICK, key=other).status == 200
        assert slow.result().status == 200

    assert database.execute("select count(*) from audit_log where action like 'limit%'").fetchone() == (0,)
