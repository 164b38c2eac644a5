"""GET /v1/jobs: every filter, pages that lose and repeat nothing, and what a page costs at most."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy import Connection

from noonmark.api.backend.context import ApiContext
from noonmark.core.states import JobState, Lane
from noonmark.store.views import jobs as job_views
from noonmark.store.views.jobs import JobsWanted

pytestmark = pytest.mark.postgres

Call = Callable[..., httpx.Response]

ONCE: dict[str, Any] = {"type": "python", "handler": "a.b", "run_at": "2100-01-01T00:00:00Z"}
JOBS: list[dict[str, Any]] = [
    {**ONCE, "name": "mail 50% off", "owner": "shop", "labels": {"team": "a", "tier": "1"}},
    {**ONCE, "name": "Mail_out", "priority": "high", "labels": {"team": "a"}},
    {**ONCE, "handler": "c.d", "labels": {"team": "b"}},
    {"name": "invoice", "type": "http", "schedule": "@daily", "payload": {"url": "https://example.com/"}},
    {"type": "python", "handler": "a.b", "name": "at once"},
    {"name": "nightly", "type": "python", "handler": "a.b", "schedule": "@daily", "owner": "ops"},
]


@pytest.fixture
def jobs(api: Call) -> list[str]:
    """The ids of `JOBS`; the last is paused, and another namespace has one as well."""
    ids = [item["id"] for item in api("POST", "/v1/jobs/bulk", 200, json={"jobs": JOBS}).json()["items"]]
    api("POST", f"/v1/jobs/{ids[5]}/pause", 200, json={})
    api("POST", "/v1/jobs", 202, json={**JOBS[0], "namespace": "other"})
    return ids


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [5, 4, 3, 2, 1, 0]),
        ("name=invoice", [3]),
        ("name=inv", []),
        ("search=MAIL", [1, 0]),
        ("search=50%25", [0]),
        ("search=l_o", [1]),
        ("search=tier", [0]),
        ("owner=shop", [0]),
        ("handler=c.d", [2]),
        ("type=http", [3]),
        ("priority=high", [1]),
        ("pool=default&limit=2", [5, 4]),
        ("pool=none", []),
        ("recurring=true", [5, 3]),
        ("recurring=false", [4, 2, 1, 0]),
        ("label=team:a", [1, 0]),
        ("label=team=a&label=tier:1", [0]),
        ("label=team:a&priority=high", [1]),
        ("state=paused", [5]),
        ("state=completed", [4]),
        ("state=active&recurring=false", [2, 1, 0]),
        ("state=paused&state=completed", [5, 4]),
        ("owner=ops&handler=a.b&state=paused&type=python", [5]),
        ("owner=ops&handler=c.d", []),
    ],
)
def test_filters(api: Call, jobs: list[str], query: str, found: list[int]) -> None:
    items = api("GET", f"/v1/jobs?{query}", 200).json()["items"]
    assert [jobs.index(item["id"]) for item in items] == found


@pytest.mark.parametrize(
    "query",
    ["state=lost", "priority=urgent", "label=x", "label=a:1&label=a:2", "limit=0", "limit=201", "cursor=x"],
)
def test_parameters_that_are_wrong(api: Call, query: str) -> None:
    assert api("GET", f"/v1/jobs?{query}", 400).json()["detail"]


def test_a_parameter_that_there_is_not_is_refused_and_nothing_is_done(api: Call) -> None:
    told = api("GET", "/v1/jobs?lable=team:a", 400).json()
    assert told["type"] == "urn:noonmark:problem:malformed"
    assert told["detail"].startswith(
        "unknown query parameter 'lable'; did you mean 'label'?; expected one of "
    )
    api("PUT", "/v1/calendars/closed?dry-run=true", 400, json={"dates": ["2030-01-01"]})
    api("GET", "/v1/calendars/closed", 404)
    # A job's namespace stands in its document: one that stands elsewhere must not mean another.
    refused = api("POST", "/v1/jobs?namespace=tests", 400, json=ONCE).json()
    assert refused["detail"] == "unknown query parameter 'namespace'; expected no query parameters"


@pytest.mark.parametrize("query", ["", "handler=a.b", "label=team:a", "type=python", "search=a"])
@pytest.mark.parametrize("looked_at", [2, 1000])
def test_pages_lose_and_repeat_nothing(
    api: Call, jobs: list[str], query: str, looked_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [item["id"] for item in api("GET", f"/v1/jobs?{query}", 200).json()["items"]]
    monkeypatch.setattr(job_views, "MOST_CHECKED", looked_at)
    seen: list[str] = []
    cursor = ""
    for _ in range(10):
        page = api("GET", f"/v1/jobs?{query}&limit=1{cursor}", 200).json()
        seen += [item["id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert (seen, page["next_cursor"]) == (whole, None)
    other = api("GET", f"/v1/jobs?owner=x&limit=1{cursor}", 400)
    assert other.json()["type"] == "urn:noonmark:problem:bad-cursor"


def test_labels_are_found_as_they_are_now(api: Call, jobs: list[str], database: psycopg.Connection) -> None:
    api("PATCH", f"/v1/jobs/{jobs[0]}", 200, json={"labels": {"team": "z"}})
    found = {team: api("GET", f"/v1/jobs?label=team:{team}", 200).json()["items"] for team in "az"}
    assert {team: [jobs.index(item["id"]) for item in items] for team, items in found.items()} == {
        "a": [1],
        "z": [0],
    }
    database.execute("delete from jobs where namespace = 'default'")
    assert database.execute("select distinct namespace from job_labels").fetchall() == [("other",)]


ROWS = 40_000
LOOKED_AT = 500
LIMIT = 20

WANTED = {
    "all": JobsWanted("tests"),
    "name": JobsWanted("tests", name="name 7"),
    "search": JobsWanted("tests", search="NAME 399"),
    "owner": JobsWanted("tests", owner="owner 3"),
    "rare owner": JobsWanted("tests", owner="nobody"),
    "handler": JobsWanted("tests", handler="handler 5"),
    "label": JobsWanted("tests", labels={"team": "team 4"}),
    "labels": JobsWanted("tests", labels={"team": "team 4", "tier": "none"}),
    "state": JobsWanted("tests", states=[JobState.PAUSED]),
    "active": JobsWanted("tests", states=[JobState.ACTIVE]),
    "completed": JobsWanted("tests", states=[JobState.COMPLETED]),
    "several states": JobsWanted("tests", states=[JobState.PAUSED, JobState.BROKEN]),
    "lane": JobsWanted("tests", lanes=[Lane.HIGH]),
    "pool": JobsWanted("tests", pool="none"),
    "kind": JobsWanted("tests", kind="kafka"),
    "recurring": JobsWanted("tests", recurring=True),
    "once": JobsWanted("tests", recurring=False, owner="owner 3"),
    "everything": JobsWanted(
        "tests", search="1", states=[JobState.ACTIVE], lanes=[Lane.LOW], pool="default", kind="python",
        handler="handler 5", owner="owner 3", labels={"team": "team 3"}, recurring=False,
    ),
    "a namespace with few": JobsWanted("small", search="none"),
}  # fmt: skip


@pytest.fixture(scope="module")
def filled(store_database: str) -> Iterator[None]:
    """Many jobs of one namespace, and few of another among them."""
    with psycopg.connect(store_database, autocommit=True) as db:
        from tests.support.emptying import empty  # noqa: PLC0415

        empty(db)
        db.execute(
            """insert into jobs (id, namespace, name, kind, handler, lane, pool, shard, owner, labels, work, unique_name,
                                 state, version, created_at, updated_at)
               select noonmark_uuid7(), case when n %% 2000 = 0 then 'small' else 'tests' end, 'name ' || n, 'python',
                      'handler ' || n %% 50, n %% 3, 'default', 0, 'owner ' || n %% 40,
                      jsonb_build_object('team', 'team ' || n %% 30), '{"payload": 1}', false,
                      case when n %% 100 = 7 then 'paused' else 'active' end, 1, now(), now()
               from generate_series(1, %s) n""",
            [ROWS],
        )
        db.execute("vacuum analyze jobs, job_labels, timers, runs")
        yield
        db.execute("truncate jobs, job_labels")


@pytest.mark.parametrize("wanted", WANTED.values(), ids=WANTED)
def test_a_page_visits_a_bounded_number_of_rows(
    filled: None, parts_of_filled: ApiContext, wanted: JobsWanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the API's role, whose policies forbid the planner what it may do as the owner."""
    monkeypatch.setattr(job_views, "MOST_CHECKED", LOOKED_AT)
    with parts_of_filled.database.reading({"tests", "small"}) as session:
        visited = _visited(session.sql, wanted)
    assert visited <= 4 * LOOKED_AT + 10 * LIMIT


@pytest.fixture
def parts_of_filled(store_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiContext]:
    from noonmark.api.main import make_parts  # noqa: PLC0415
    from noonmark.settings import Settings  # noqa: PLC0415

    monkeypatch.setenv("NOONMARK_DATABASE_URL", store_database)
    made = make_parts(Settings.load(api_connections=2), shards=16, cursor_key=b"k" * 32)
    yield made
    made.close()


def _visited(connection: Connection, wanted: JobsWanted) -> int:
    """Return how many rows of tables and indexes the statements of a page visit."""
    statements = _statements(connection, wanted)
    assert statements
    total = 0
    for text, parameters in statements:
        rows = connection.exec_driver_sql(f"explain (analyze, format json) {text}", parameters).scalar_one()
        plan = rows if isinstance(rows, list) else json.loads(rows)
        total += _rows(plan[0]["Plan"])
    return total


def _statements(connection: Connection, wanted: JobsWanted) -> list[tuple[str, Any]]:
    from sqlalchemy import event  # noqa: PLC0415

    seen: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, text: str, parameters: Any, *_rest: Any) -> None:
        seen.append((text, parameters))

    event.listen(connection, "before_cursor_execute", note)
    job_views.list_jobs(connection, wanted, limit=LIMIT)
    event.remove(connection, "before_cursor_execute", note)
    return seen


def _rows(plan: dict[str, Any]) -> int:
    own = 0
    if "Relation Name" in plan:
        lost = plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
        own = round((plan["Actual Rows"] + lost) * plan["Actual Loops"])
    return own + sum(map(_rows, plan.get("Plans", ())))
