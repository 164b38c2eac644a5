"""From a submission event on Kafka to a recorded outcome and a lifecycle event, through all four services."""

import json

from tests.support.cluster import SERVICES, Cluster
from tests.support.publish import Load


def full_load(noonmark: Cluster, url: str) -> Load:
    """Every kind of job that there is, in three lanes, with duplicates and invalid events among them."""
    load = Load()
    load.now(60)
    load.once(40, noonmark.soon(1.5), spread_seconds=1.0)
    load.once(5, noonmark.soon(-30))
    load.interval(4, noonmark.soon(2), instants=3)
    load.interval(2, noonmark.soon(2), instants=3, overlap="skip")
    load.http(10, f"{url}/ok")
    retry = {"max_retries": 2, "delay_seconds": 0.2, "jitter": "none"}
    load.now(5, "chaos.flaky", payload={"fails": 2}, retry=retry)
    load.now(3, "chaos.flaky", payload={"fails": 9}, retry=retry | {"max_retries": 1}, ends=["dead"])
    # The deadline is for the first start: a retry of a run that began in time is not late.
    late = {"max_retries": 1, "delay_seconds": 1, "jitter": "none"}
    load.now(2, "chaos.flaky", payload={"fails": 1}, retry=late, start_deadline_seconds=0.5)
    load.http(3, f"{url}/flaky/1", retry=retry)
    load.http(2, f"{url}/fail", retry=retry | {"max_retries": 1}, ends=["dead"])
    load.duplicates(10)
    load.invalid(3)
    return load


def test_a_submission_event_becomes_a_recorded_outcome_and_an_event(noonmark: Cluster) -> None:
    url = noonmark.start_target()
    noonmark.start(*SERVICES)
    with noonmark.standing_clock():
        load = full_load(noonmark, url)
        noonmark.take_in(load)
        begun = "select count(started_at) from runs where start_by is not null"
        noonmark.wait(lambda: noonmark.value(begun) == 2, "the runs with a deadline to start before it")
    report = noonmark.assert_clean(load)
    assert report["runs"] == load.instants
    assert report["duplicates"] == {}
    states = noonmark.states(load.namespace)
    assert states["dead"] == 5
    assert noonmark.value("select count(*) from dead_letters") == 5
    attempts = dict(noonmark.rows("select outcome, count(*) from attempts group by 1"))
    assert attempts == {"failed": 5 * 2 + 3 * 2 + 2 + 3 + 2 * 2}
    errors = noonmark.rows("select errors from rejections")
    assert all(row[0][0]["pointer"] == "/data/max_retries" for row in errors)

    # The checker sees what is taken from a real system, not only what is planted in its own tests.
    noonmark.database.execute(
        "update runs set result = '1' where id = (select id from runs where state = 'succeeded' and result is null limit 1)"
    )
    noonmark.database.execute("update dead_letters set fingerprint = ''")
    noonmark.database.execute("update runs set owner = 1000 where state = 'succeeded' and attempt = 2")
    retried = noonmark.value("select count(*) from runs where owner = 1000")
    found = noonmark.check(load)["invariants"]
    assert {name: count for name, count in found.items() if isinstance(count, int) and count} == {
        "S17": 2,  # the target noted that it returned nothing, and the event has no digest
        "S18": 5,
        "S19": retried,
    }

    before, _, after = noonmark.target_log.read_text(encoding="utf-8").partition("\n")
    doubled = after.partition("\n")[0]
    noonmark.target_log.write_text(f"{after}{doubled}\n", encoding="utf-8")
    noonmark.database.execute("delete from runs where id = %s", [json.loads(doubled)["run"]])
    report = noonmark.check(load)
    assert not report["clean"]
    assert report["lost"] == 2, f"the dropped call {before}, and the dropped row {doubled}"
    assert report["second_verdicts"] == 1
    assert report["kinds"]["extra"] >= 1
