"""`noonmark limit …`, caps of namespaces, and what listings say of runs that wait for room."""

import json

import pytest
from tests.integration.intake.test_room import settle
from tests.integration.intake.world import event, nightly, open_world


@pytest.fixture
def jobs(emptied_database):
    with open_world(emptied_database) as world:
        yield world


def test_a_limit_is_set_listed_and_deleted(noonmark):
    assert noonmark("limit", "set", "stripe", "--max-running", "5", "--rate", "100/60s", "--burst", "20") == (
        "limit stripe of namespace default admits 5 at a time and 100 in 60 s, 20 at once\n"
    )
    assert noonmark(
        "limit", "set", "stripe", "--max-running", "5", "--rate", "100/1m", "--burst", "20"
    ).endswith(" already\n")
    (row,) = json.loads(noonmark("limit", "list", "--json"))["items"]
    assert {
        k: row[k] for k in ("name", "namespace", "max_running", "rate_count", "rate_seconds", "burst")
    } == {
        "name": "stripe",
        "namespace": "default",
        "max_running": 5,
        "rate_count": 100,
        "rate_seconds": 60.0,
        "burst": 20,
    }
    assert (row["in_use"], row["waiting"]) == (0, 0)
    assert "100/60s" in noonmark("limit", "list")
    shown = json.loads(noonmark("limit", "set", "mail", "--namespace", "shop", "--rate", "5/s", "--json"))
    assert shown == {
        "namespace": "shop",
        "name": "mail",
        "max_running": None,
        "rate_count": 5,
        "rate_seconds": 1.0,
        "burst": None,
        "changed": True,
    }
    assert noonmark("limit", "delete", "stripe") == "limit stripe of namespace default deleted\n"
    for verb in ("delete", "show"):
        told = noonmark("limit", verb, "stripe", code=1)
        assert "limit 'stripe' does not exist in namespace 'default'; run `noonmark limit list`" in told


def test_a_limit_is_shown_with_all_its_figures(noonmark):
    noonmark("limit", "set", "stripe", "--namespace", "shop", "--max-running", "5", "--rate", "100/1m")
    shown = dict(
        line.split(maxsplit=1)
        for line in noonmark("limit", "show", "stripe", "--namespace", "shop").splitlines()
    )
    assert list(shown) == [
        "name",
        "namespace",
        "max_running",
        "rate",
        "burst",
        "in_use",
        "waiting",
        "updated_at",
    ]
    assert [shown[one] for one in ("name", "namespace", "max_running", "rate", "burst", "in_use", "waiting")] == [
        "stripe", "shop", "5", "100/60s", "-", "0", "0",
    ]  # fmt: skip
    (listed,) = json.loads(noonmark("limit", "list", "--namespace", "shop", "--json"))["items"]
    assert json.loads(noonmark("limit", "show", "stripe", "--namespace", "shop", "--json")) == listed
    assert "in namespace 'default'" in noonmark("limit", "show", "stripe", code=1)
    told = noonmark("limit", "show", "strip", "--namespace", "shop", code=1)
    assert "limit 'strip' does not exist in namespace 'shop'; did you mean 'stripe'?" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["set", "x"], "a limit needs --max-running, --rate, or both"),
        (["set", "X y", "--max-running", "1"], "is not a valid limit name"),
        (["set", "x", "--namespace", "A b", "--max-running", "1"], "is not a valid namespace name"),
        (["set", "x", "--max-running", "0"], "expected a whole number from 1"),
        (
            ["set", "x", "--rate", "fast"],
            "'fast' is not a valid rate; expected runs per time, such as 100/60s",
        ),
        (["set", "x", "--rate", "0/s"], "is not a valid rate"),
        (["set", "x", "--max-running", "1", "--burst", "3"], "--burst needs --rate"),
        (["set", "x", "--rate", "1/30d", "--burst", "9"], "takes 270 days to fill"),
    ],
)
def test_what_is_no_limit_is_refused_with_a_sentence(noonmark, arguments, told):
    assert told in noonmark("limit", *arguments, code=2)


def test_listings_say_what_a_run_waits_for(noonmark, jobs):
    noonmark("limit", "set", "stripe", "--max-running", "1")
    job_id = jobs.job_id(nightly(overlap="allow", limits=["stripe"]))
    jobs.job_id(nightly("keyed", overlap="allow", limits=[{"name": "stripe", "key": "c 1"}]))
    jobs.take(*[event("trigger", name=name) for name in ("nightly", "nightly", "keyed", "keyed")])
    settle(jobs)

    rows = json.loads(noonmark("run", "list", "--state", "waiting", "--json"))["items"]
    assert {(row["reason"], row["waits_for"]) for row in rows} == {
        ("limit", "stripe"),
        ("limit", "stripe/c 1"),
    }
    assert "limit stripe/c 1" in noonmark("run", "list", "--state", "waiting")
    run = noonmark("run", "show", rows[0]["id"])
    assert "waits_for" in run.replace(" ", "_") or "waits for" in run
    assert json.loads(noonmark("job", "show", "nightly", "--json"))["document"]["limits"] == ["stripe"]
    assert json.loads(noonmark("job", "show", "keyed", "--json"))["document"]["limits"] == [
        {"name": "stripe", "key": "c 1"}
    ]
    assert str(job_id) in noonmark("job", "show", "nightly")
    (row,) = json.loads(noonmark("limit", "list", "--json"))["items"]
    assert (row["in_use"], row["waiting"]) == (2, 2)
    assert json.loads(noonmark("limit", "show", "stripe", "--json")) == row
    assert "is used by nightly, keyed" in noonmark("limit", "delete", "stripe", code=1)


def test_a_namespace_is_capped_and_uncapped(noonmark):
    assert noonmark("namespace", "set", "shop", "--max-in-flight", "3").startswith(
        "namespace shop has a limit of 3 runs in flight per lane\n"
    )
    assert "had a limit of 3" in noonmark("namespace", "set", "shop", "--max-in-flight", "3")
    (row,) = json.loads(noonmark("namespace", "list", "--json"))["items"]
    assert row["max_in_flight"] == 3
    done = json.loads(
        noonmark("namespace", "set", "shop", "--max-in-flight", "none", "--zone", "UTC", "--json")
    )
    assert done == {"name": "shop", "timezone": "UTC", "max_in_flight": None, "changed": True}
    assert "nothing to set" in noonmark("namespace", "set", "shop", code=2)
    for wrong in ("0", "-1", "many"):
        assert noonmark("namespace", "set", "shop", f"--max-in-flight={wrong}", code=2)


def test_a_quota_of_jobs_is_set_told_and_taken_away(noonmark, jobs):
    told = noonmark("namespace", "set", "default", "--max-jobs", "1")
    assert told.startswith("namespace default has a quota of 1 recurring job\n")
    assert jobs.one(nightly("a")).status.value == "accepted"
    refused = jobs.one(nightly("b"))
    assert (refused.status.value, refused.reason.value) == ("rejected", "quota")
    assert json.loads(noonmark("namespace", "show", "default", "--json"))["max_jobs"] == 1
    assert "not a whole number" in noonmark("namespace", "set", "default", "--max-jobs", "-1", code=2)
    assert "has no quota of jobs" in noonmark("namespace", "set", "default", "--max-jobs", "none")
    assert jobs.one(nightly("b")).status.value == "accepted"
