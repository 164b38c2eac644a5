"""`noonmark namespace …` as operators run it, and what `noonmark job show` says of a pause."""

import json

import psycopg
import pytest
from tests.integration.intake.world import LATER, create, nightly, open_world


@pytest.fixture
def jobs(emptied_database):
    """A namespace with two recurring jobs and a one-time one."""
    with open_world(emptied_database) as world:
        world.take(
            nightly("a", namespace="shop", schedule={"every": 60}),
            nightly("b", namespace="shop"),
            create(namespace="shop", run_at=LATER),
        )
        yield world


def test_a_namespace_is_set_listed_paused_shown_and_resumed(noonmark, jobs):
    assert noonmark("namespace", "set", "shop", "--zone", "Europe/Berlin") == (
        "namespace shop has the zone Europe/Berlin\n"
    )
    assert "had the zone Europe/Berlin already" in noonmark(
        "namespace", "set", "shop", "--timezone", "Europe/Berlin"
    )
    assert noonmark("namespace", "pause", "shop", "--reason", "moving") == (
        "namespace shop is paused: 3 jobs paused, 0 runs deferred\n"
    )
    assert "was paused already: nothing to pause" in noonmark("namespace", "pause", "shop")
    (listed,) = json.loads(noonmark("namespace", "list", "--json"))["items"]
    assert (listed["name"], listed["timezone"], listed["pause_reason"]) == ("shop", "Europe/Berlin", "moving")
    assert "paused" in noonmark("namespace", "list")
    shown = json.loads(noonmark("namespace", "show", "shop", "--json"))
    assert shown["recurring_jobs"] == {"paused_by_namespace": 2}
    assert shown["paused_at"] is not None

    done = json.loads(noonmark("namespace", "resume", "shop", "--missed", "latest", "--json"))
    counts = {"jobs": 3, "runs": 0, "jobs_with_held_instants": 0}
    assert done == {"name": "shop", "state": "active", "changed": True, **counts}
    assert noonmark("namespace", "resume", "shop") == "namespace shop was active already: nothing to resume\n"
    assert {row["resume_choice"] for row in jobs.rows("select resume_choice from jobs")} == {"latest"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("set", "shop", "--timezone", "Europe/Berln"), "did you mean 'Europe/Berlin'"),
        (("set", "Shop", "--timezone", "UTC"), "'Shop' is not a valid namespace name; expected 1 to 63 of"),
        (("pause", "a.b"), "'a.b' is not a valid namespace name"),
        (("resume", "shop", "--missed", "some"), "some"),
        (("set", "shop"), "--timezone"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(noonmark, arguments, told):
    assert told in noonmark("namespace", *arguments, code=2)


def test_a_namespace_that_nobody_knows_is_not_shown(noonmark):
    told = noonmark("namespace", "show", "nowhere", code=1)
    assert told == "namespace 'nowhere' does not exist; run `noonmark namespace list`\n"


def test_a_paused_job_is_shown_with_who_paused_it_and_how_much_is_held(noonmark, jobs, emptied_database):
    noonmark("namespace", "pause", "shop")
    with psycopg.connect(emptied_database, autocommit=True) as connection:
        connection.execute("update timers set scheduled_for = scheduled_for - interval '600 s'")
        connection.execute(
            "update jobs set schedule = jsonb_set(schedule, '{anchor}', '\"2026-01-01T00:00:00Z\"') where name = 'a'"
        )
    shown = json.loads(noonmark("job", "show", "a", "--namespace", "shop", "--json"))
    assert (shown["state"], shown["paused_by"], shown["next_run_at"]) == ("paused", "namespace", None)
    assert shown["paused_at"] is not None
    assert shown["held_instants"] in (9, 10)
    assert noonmark("namespace", "resume", "shop").splitlines() == [
        "namespace shop is resumed: 3 jobs resumed, 0 runs queued",
        "1 job had instants in the pause: the next claims decide about them",
    ]
    shown = json.loads(noonmark("job", "show", "a", "--namespace", "shop", "--json"))
    assert (shown["state"], shown["paused_by"], shown["paused_at"]) == ("active", None, None)
    assert shown["held_instants"] is None


def test_a_namespace_without_any_job_is_named_with_one_that_may_have_been_meant(noonmark, jobs):
    hint = "namespace 'shopp' has no recurring job yet; did you mean 'shop'?"
    assert noonmark("namespace", "resume", "shopp").splitlines()[1:] == [hint]
    assert noonmark("namespace", "pause", "shopp").splitlines()[1:] == [hint]
    assert noonmark("namespace", "set", "shopp", "--timezone", "Asia/Tokyo").splitlines()[1:] == [hint]
    assert noonmark("calendar", "set", "x", "--date", "2026-12-25", "--namespace", "shopp").splitlines()[
        1:
    ] == [hint]
    assert "no job" not in noonmark("namespace", "pause", "shop")
    assert "no job" not in noonmark("calendar", "set", "x", "--date", "2026-12-25", "--namespace", "shop")
    assert "no job" not in noonmark("calendar", "set", "x", "--date", "2026-12-25")


def test_a_namespace_goes_back_to_its_defaults_unless_it_is_paused_or_has_calendars(noonmark, jobs):
    noonmark("namespace", "pause", "shop")
    assert "resume shop` first" in noonmark("namespace", "delete", "shop", code=1)
    noonmark("namespace", "resume", "shop")
    noonmark("calendar", "set", "x", "--date", "2026-12-25", "--namespace", "shop")
    told = noonmark("namespace", "delete", "shop", code=1)
    assert told.endswith(": namespace shop has the calendars x: delete them first\n")
    noonmark("calendar", "delete", "x", "--namespace", "shop")
    noonmark("namespace", "set", "shop", "--timezone", "Asia/Tokyo")
    assert (
        noonmark("namespace", "delete", "shop")
        == "namespace shop reset to the defaults: zone UTC, no limit of runs, not paused\n"
    )
    assert "namespace 'shop'" in noonmark("namespace", "delete", "shop", code=1)
    (listed,) = json.loads(noonmark("namespace", "list", "--json"))["items"]
    assert (listed["name"], listed["timezone"]) == ("shop", "UTC")


def test_an_interrupted_resume_keeps_a_namespace_from_being_deleted(noonmark, jobs, emptied_database):
    noonmark("namespace", "pause", "shop")
    with psycopg.connect(emptied_database, autocommit=True) as connection:
        connection.execute("update namespaces set paused_at = null")
    assert "or some of its jobs still are" in noonmark("namespace", "delete", "shop", code=1)


def test_a_paused_one_time_job_keeps_its_due_instant(noonmark, jobs):
    noonmark("namespace", "pause", "shop")
    listed = json.loads(noonmark("job", "list", "--namespace", "shop", "--json"))["items"]
    (one,) = [one for one in listed if one["document"]["run_at"]]
    assert (one["state"], one["next_run_at"]) == ("paused", LATER)


def test_held_instants_that_are_counted_one_by_one_are_not_counted_without_end(
    noonmark, jobs, emptied_database
):
    jobs.take(nightly("c", namespace="shop", schedule={"any": [{"every": 60}, {"cron": "30 3 * * *"}]}))
    noonmark("namespace", "pause", "shop")

    def held(days):
        with psycopg.connect(emptied_database, autocommit=True) as connection:
            connection.execute(
                "update timers set scheduled_for = noonmark_now() - %s * interval '1 day'"
                " where job_id = (select id from jobs where name = 'c')",
                [days],
            )
            connection.execute(
                "update jobs set schedule = replace(schedule::text, schedule #>> '{any,0,anchor}',"
                " '2026-01-01T00:00:00Z')::jsonb where name = 'c'"
            )
        shown = noonmark("job", "show", "c", "--namespace", "shop", "--json")
        return json.loads(shown)["held_instants"]

    assert held(1) in (1440, 1441)
    assert held(30) is None
