"""Alerts over the API: listed page by page, read with how they were told, seen by those alone who may."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

pytestmark = pytest.mark.postgres


def alert(world, fingerprint="late:x", *, kind="late", namespace="tests", age=0, over=False, **columns):
    """Something that was found wrong so many seconds ago; its id."""
    return world.value(
        "insert into alerts (fingerprint, kind, severity, namespace, job_id, summary, details, raised_at, seen_at,"
        " resolved_at) values (%s, %s, 'warning', %s, %s, %s, %s, now() - make_interval(secs => %s), now(),"
        " case when %s then now() end) returning id",
        fingerprint,
        kind,
        namespace,
        columns.get("job_id"),
        columns.get("summary", "has not started"),
        Jsonb(columns.get("details", {})),
        age,
        over,
    )


def listed(api, query="", status=200, **options):
    return api("GET", f"/v1/alerts{query}", status, **options).json()


def test_open_ones_are_listed_the_newest_first_and_others_where_they_are_asked_for(api, world):
    job = world.job()
    first, second = alert(world, "a", age=9, job_id=job), alert(world, "b", age=5, kind="dead")
    over = alert(world, "c", age=7, over=True)

    def ids(query):
        return [UUID(one["id"]) for one in listed(api, query)["items"]]

    assert ids("") == [second, first]
    assert ids("?state=all") == [second, over, first]
    assert ids("?state=resolved") == [over]
    assert ids("?kind=dead") == [second]
    assert ids(f"?job_id={job}") == [first]
    assert ids(f"?job_id={uuid4()}") == []
    assert ids("?namespace=tests&state=open") == [second, first]


def test_pages_follow_each_other_though_more_are_raised_meanwhile(api, world):
    made = [alert(world, f"late:{n}", age=n + 1) for n in range(5)]

    first = listed(api, "?limit=2")
    alert(world, "late:new")
    second = listed(api, f"?limit=2&cursor={first['next_cursor']}")
    third = listed(api, f"?limit=2&cursor={second['next_cursor']}")

    pages = [first, second, third]
    assert [UUID(one["id"]) for page in pages for one in page["items"]] == made
    assert third["next_cursor"] is None
    listed(api, f"?limit=2&state=all&cursor={first['next_cursor']}", 400)


def test_one_is_read_with_how_far_each_channel_was_told(api, world):
    made = alert(world, details={"count": 3})
    world.db.execute(
        """insert into alert_deliveries (alert_id, change, channel, attempts, due_at, last_error, sent_at) values
           (%(a)s, 'raised', 'alertmanager', 0, now(), null, now()), (%(a)s, 'raised', 'webhook', 40, 'infinity', 'no', null),
           (%(a)s, 'resolved', 'webhook', 1, now(), 'answered 500', null)""",
        {"a": made},
    )

    found = api("GET", f"/v1/alerts/{made}", 200).json()

    assert (found["kind"], found["fingerprint"], found["details"]) == ("late", "late:x", {"count": 3})
    told = [(one["channel"], one["change"], one["state"], one["last_error"]) for one in found["deliveries"]]
    assert told == [
        ("alertmanager", "raised", "sent", None),
        ("webhook", "raised", "given_up", "no"),
        ("webhook", "resolved", "waiting", "answered 500"),
    ]
    assert [one["due_at"] is None for one in found["deliveries"]] == [False, True, False]


def test_what_a_handler_said_is_hidden_from_those_who_may_not_see_it(api, world, token):
    made = alert(
        world,
        kind="dead",
        summary="1 run of job x used up its attempts: card 4711",
        details={"error": "card 4711", "count": 1},
    )
    viewer, operator = token("viewer", "tests"), token("operator", "tests")

    for path in ("/v1/alerts", f"/v1/alerts/{made}"):
        assert "4711" not in api("GET", path, 200, key=viewer).text
        assert "4711" in api("GET", path, 200, key=operator).text
    hidden = api("GET", f"/v1/alerts/{made}", 200, key=viewer).json()
    assert hidden["error_hidden"]
    assert hidden["details"] == {"error": None, "count": 1}


def test_another_namespace_and_the_installation_are_seen_by_those_alone_who_may(api, world, token):
    mine, theirs, everybodys = (
        alert(world, place or "*", namespace=place) for place in ("tests", "other", None)
    )
    key = token("admin", "tests")

    assert [UUID(one["id"]) for one in listed(api, key=key)["items"]] == [mine]
    for hidden in (theirs, everybodys, uuid4()):
        api("GET", f"/v1/alerts/{hidden}", 404, key=key)
    listed(api, "?namespace=other", 404, key=key)
    assert {UUID(one["id"]) for one in listed(api)["items"]} == {mine, theirs, everybodys}
    api("GET", f"/v1/alerts/{everybodys}", 200, key=token("viewer", "*"))
