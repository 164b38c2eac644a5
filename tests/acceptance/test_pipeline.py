"""From a submission event on Kafka to a recorded outcome and a lifecycle event, through all four services."""

import json

from tests.support.cluster import SERVICES, Cluster
from tests.support.publish import Load, soon


def full_load(url: str) -> Load:
    """Every kind of job that there is, in three lanes, with duplicates and invalid events among them."""
    load = Load()
    load.now(60)
    load.once(40, soon(1.5), spread_seconds=1.0)
    load.once(5, soon(-30))
    load.interval(4, soon(2), instants=3)
    load.interval(2, soon(2), instants=3, overlap="skip")
    load.http(10, f"{url}/ok")
    retry = {"max_retries": 2, "delay_seconds": 0.2, "jitter": "none"}
    load.now(5, "chaos.flaky", payload={"fails": 2}, retry=retry)
    load.now(3, "chaos.flaky", payload={"fails": 9}, retry=retry | {"max_retries": 1}, ends=["dead"])
    load.http(3, f"{url}/flaky/1", retry=retry)
    load.http(2, f"{url}/fail", retry=retry | {"max_retries": 1}, ends=["dead"])
    load.duplicates(10)
    load.invalid(3)
    return load


def test_a_submission_event_becomes_a_recorded_outcome_and_an_event(noonmark: Cluster) -> None:
    url = noonmark.start_target()
    noonmark.start(*SERVICES)
    load = full_load(url)
    noonmark.publish(load)
    report = noonmark.assert_clean(load)
    assert report["runs"] == load.instants
    assert report["duplicates"] == {}
    states = noonmark.states(load.namespace)
    assert states["dead"] == 5
    assert noonmark.value("select count(*) from dead_letters") == 5
    attempts = dict(noonmark.rows("select outcome, count(*) from attempts group by 1"))
    assert attempts == {"failed": 5 * 2 + 3 * 2 + 3 + 2 * 2}
    errors = noonmark.rows("select errors from rejections")
    assert all(row[0][0]["pointer"] == "/data/max_retries" for row in errors)


def test_the_checker_finds_what_is_taken_from_a_real_system(noonmark: Cluster) -> None:
    noonmark.start(*SERVICES)
    load = Load()
    load.now(9)
    noonmark.publish(load)
    noonmark.assert_clean(load)
    lines = noonmark.target_log.read_text(encoding="utf-8").splitlines(keepends=True)
    noonmark.target_log.write_text("".join([*lines[1:], lines[1]]), encoding="utf-8")
    noonmark.database.execute("delete from runs where id = %s", [json.loads(lines[2])["run"]])
    report = noonmark.check(load)
    assert not report["clean"]
    # The dropped call, and the dropped row; the call that stands there twice; the call of the dropped row.
    assert report["lost"] == 2
    assert report["second_verdicts"] == 1
    assert report["kinds"]["extra"] >= 1
