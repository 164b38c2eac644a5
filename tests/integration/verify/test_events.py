"""`noonmark verify --events` on a real ledger and a real Kafka: each planted fault is found, and gaps are not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from tests.integration.store.world import SHARDS, TOPICS, World
from tests.integration.verify.announced import Announced, announced_ledger
from tests.support.cli import call

from noonmark.cli.verify.pacing import Pacer
from noonmark.kafka.consumers.ranges import RangeReader
from noonmark.schemas.events import lifecycle
from noonmark.store.database.connect import connect
from noonmark.store.maintenance.housekeeping import drop_day
from noonmark.store.runs import dead_letters
from noonmark.store.runs.dead_letters import DeadSelection
from noonmark.store.verify.reader import FIRST_ID, LAST_ID, LedgerReader, Span
from noonmark.verify import events
from noonmark.verify.ledger import EVENT_RULES

pytestmark = pytest.mark.kafka


@pytest.fixture
def announced(world: World, kafka_server, tmp_path) -> Announced:
    return announced_ledger(world, kafka_server.bootstrap, tmp_path)


def change(announced: Announced, query: str, run: str = "plain") -> None:
    announced.ledger.world.db.execute(query, [getattr(announced.ledger, run)])


def a_lost_event(it: Announced) -> None:
    it.without(it.ledger.plain)


def a_lost_event_of_a_redriven_run(it: Announced) -> None:
    it.without(it.ledger.redriven, keep=lambda one: one["state"] == "dead")


def a_lost_dead_letter_event(it: Announced) -> None:
    it.dead = [event for event in it.dead if event["data"]["run_id"] != str(it.ledger.dead)]


def a_success_announced_as_dead(it: Announced) -> None:
    (said,) = it.outcomes(it.ledger.plain)
    said["state"] = "dead"


def a_second_verdict(it: Announced) -> None:
    (said,) = it.outcomes(it.ledger.plain)
    event = copy.deepcopy(it.lifecycle[0]) | {"id": "01900000-0000-7000-8000-000000000000"}
    event["data"]["outcomes"] = [said | {"state": "cancelled"}]
    it.lifecycle.append(event)


def a_verdict_under_a_fence_that_never_was(it: Announced) -> None:
    (said,) = [one for one in it.outcomes(it.ledger.dead) if one["state"] == "dead"]
    event = copy.deepcopy(it.lifecycle[0]) | {"id": "01900000-0000-7000-8000-000000000001"}
    event["data"]["outcomes"] = [said | {"fence": said["fence"] + 1}]
    it.lifecycle.append(event)


def a_success_that_is_queued_again(it: Announced) -> None:
    change(it, "update runs set state = 'queued', finished_at = null where id = %s")


def a_rewritten_result(it: Announced) -> None:
    change(it, "update runs set result = '\"none\"' where id = %s")


def a_deleted_result(it: Announced) -> None:
    change(it, "update runs set result = null where id = %s")


def an_error_that_is_rewritten_everywhere(it: Announced) -> None:
    for table, key in (("runs", "id"), ("attempts", "run_id"), ("dead_letters", "run_id")):
        change(it, f"update {table} set error = 'bad luck' where {key} = %s", "dead")


def a_reason_that_is_rewritten_everywhere(it: Announced) -> None:
    for table, key in (("runs", "id"), ("dead_letters", "run_id")):
        change(it, f"update {table} set reason = 'lost' where {key} = %s", "dead")


def a_moved_start(it: Announced) -> None:
    change(it, "update runs set started_at = started_at + interval '1 ms' where id = %s")


def a_moved_end(it: Announced) -> None:
    change(it, "update runs set finished_at = finished_at + interval '1 ms' where id = %s")


def a_retried_attempt_with_another_error(it: Announced) -> None:
    change(it, "update attempts set error = 'bad luck' where run_id = %s", "retried")


def a_count_that_starts_again_without_a_redrive(it: Announced) -> None:
    change(it, "update runs set attempt = 0 where id = %s", "cancelled")
    change(it, "update runs set attempt = 1 where id = %s", "retried")
    for one in (*it.outcomes(it.ledger.retried), *it.outcomes(it.ledger.cancelled)):
        one["attempt"] = 1 if one["run_id"] == str(it.ledger.retried) else 0


def a_loss_that_is_not_counted(it: Announced) -> None:
    change(it, "update runs set losses = 0 where id = %s", "lost")


def an_attempt_that_only_the_death_event_has(it: Announced) -> None:
    (event,) = [event for event in it.dead if event["data"]["run_id"] == str(it.ledger.dead)]
    event["data"]["history"].append(event["data"]["history"][-1] | {"fence": 77})


def an_event_of_another_namespace(it: Announced) -> None:
    (said,) = it.outcomes(it.ledger.plain)
    said["namespace"] = "other"


def another_pool(it: Announced) -> None:
    (said,) = it.outcomes(it.ledger.plain)
    said["pool"] = "other"


def another_cause_of_death(it: Announced) -> None:
    change(it, "update dead_letters set fingerprint = 'another' where run_id = %s", "dead")


def a_deleted_run(it: Announced) -> None:
    change(it, "delete from runs where id = %s")


def a_deleted_run_that_was_dead(it: Announced) -> None:
    for table, key in (("dead_letters", "run_id"), ("attempts", "run_id"), ("runs", "id")):
        change(it, f"delete from {table} where {key} = %s", "dead")


FAULTS: dict[Callable[[Announced], None], tuple[dict[str, int], str]] = {
    a_lost_event: ({"S6": 1}, "plain"),
    a_lost_event_of_a_redriven_run: ({"S6": 1}, "redriven"),
    a_lost_dead_letter_event: ({"S6": 1}, "dead"),
    a_second_verdict: ({"S4": 2}, "plain"),
    a_verdict_under_a_fence_that_never_was: ({"S4": 1}, "dead"),
    a_success_that_is_queued_again: ({"S4": 1, "S17": 1}, "plain"),
    a_rewritten_result: ({"S17": 1}, "plain"),
    a_deleted_result: ({"S17": 1}, "plain"),
    an_error_that_is_rewritten_everywhere: ({"S17": 2}, "dead"),
    a_reason_that_is_rewritten_everywhere: ({"S17": 1}, "dead"),
    a_moved_start: ({"S17": 1}, "plain"),
    a_moved_end: ({"S17": 1}, "plain"),
    a_retried_attempt_with_another_error: ({"S17": 1}, "retried"),
    a_count_that_starts_again_without_a_redrive: ({"S15": 1}, "retried"),
    a_loss_that_is_not_counted: ({"S15": 1}, "lost"),
    an_attempt_that_only_the_death_event_has: ({"S15": 1}, "dead"),
    an_event_of_another_namespace: ({"S12": 1}, "plain"),
    another_pool: ({"S18": 1}, "plain"),
    another_cause_of_death: ({"S18": 1}, "dead"),
    a_deleted_run: ({"S4": 1}, "plain"),
    a_deleted_run_that_was_dead: ({"S4": 1}, "dead"),
}
"""What must be found: findings by rule, and the run by what became of it."""


def test_a_good_ledger_agrees_with_its_events(announced):
    announced.publish()

    report = announced.check()

    assert report.findings == []
    assert (report.events.compared, report.events.not_compared) == (7, 0)
    assert report.events.records == 2 + len(announced.lifecycle) + len(announced.dead)
    assert set(EVENT_RULES) < set(report.rules)


@pytest.mark.parametrize("step", [1, 3])
def test_steps_of_any_size_find_the_events_of_their_runs(announced, step):
    a_rewritten_result(announced)
    announced.publish()

    report = announced.check(step=step)

    assert (dict(report.counts), report.events.compared) == ({"S17": 1}, 7)


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_found_by_its_rule_and_by_no_other(announced, plant):
    found, run = FAULTS[plant]
    plant(announced)
    announced.publish()

    report = announced.check()

    assert dict(report.counts) == found, [one.sentence for one in report.findings]
    assert {one.run_id for one in report.findings} == {str(getattr(announced.ledger, run))}


def test_an_event_that_is_still_in_the_outbox_is_no_finding(announced):
    """Also one that Kafka refused, which waits in the lane after that of events."""
    for lane, event in ((3, announced.lifecycle[0]), (4, announced.lifecycle[-1])):
        announced.ledger.world.db.execute(
            "insert into outbox (slice, lane, created_at, topic, value) values (3, %s, noonmark_now(), %s, %s)",
            [lane, announced.topics.lifecycle, json.dumps(event).encode()],
        )
        announced.lifecycle.remove(event)
    announced.publish()

    report = announced.check()

    assert report.counts.keys() == {"V3"}, report.findings
    assert report.events.compared == 7


def test_an_event_that_was_sent_twice_is_no_second_verdict(announced):
    announced.lifecycle += announced.lifecycle
    announced.dead += announced.dead
    announced.publish()

    assert announced.check().findings == []


def test_events_of_releases_without_digests_agree(announced):
    for event in announced.lifecycle:
        for one in event["data"]["outcomes"]:
            one.pop("result_digest", None)
            one.pop("error_digest", None)
    announced.publish()

    assert announced.check().findings == []


def test_what_retention_removed_is_not_compared_and_no_finding(announced):
    """The records before the last are gone, so nothing is known about runs that ended before it."""
    a_lost_event(announced)
    announced.publish()
    end = len(announced.lifecycle)  # one below the end: the older record is before them
    place = TopicPartition(announced.topics.lifecycle, partition(announced), end)
    admin = AdminClient(announced.config.client())
    for future in admin.delete_records([place]).values():
        future.result()

    report = announced.check()

    assert report.findings == []
    assert (report.events.compared, report.events.not_compared) == (0, 7)
    assert report.events.records == 1 + 1 + len(announced.dead)


def partition(announced: Announced) -> int:
    """The partition of the namespace."""
    kafka = RangeReader(announced.config, [announced.topics.lifecycle])
    try:
        kafka.open(announced.ledger.world.now() - timedelta(days=1))
        (place,) = [place for place, one in kafka.ranges.items() if one.end > one.start]
        return place[1]
    finally:
        kafka.close()


def test_topics_that_begin_after_the_runs_show_nothing_about_them(announced):
    """Such as those of a new Kafka cluster."""
    a_lost_event(announced)
    a_lost_dead_letter_event(announced)
    announced.older = False
    announced.publish()

    report = announced.check()

    assert report.findings == []
    assert (report.events.compared, report.events.not_compared) == (0, 7)


def test_records_of_others_are_counted_and_ignored(announced):
    announced.lifecycle += [{"subject": "x"}, {"subject": "tests", "type": "other"}]
    announced.dead += [{"subject": "x", "type": "other"}]
    announced.publish()

    report = announced.check()

    assert (report.findings, report.events.unreadable) == ([], 2)


def test_what_ended_after_the_check_began_is_not_compared(announced):
    a_lost_event(announced)
    announced.publish()
    announced.ledger.world.turn_clock(timedelta(0))

    report = announced.check()

    assert report.counts.total() == 0


def test_a_deleted_run_is_named_with_its_job_and_what_was_announced(announced):
    a_deleted_run(announced)
    announced.publish()

    (finding,) = announced.check(step=2, namespaces=("tests",)).findings

    assert (finding.kind, finding.namespace) == ("run_gone", "tests")
    assert finding.sentence.endswith(
        f"Z (run {announced.ledger.plain}) is succeeded by its event, but not in the ledger"
    )


def test_runs_whose_day_retention_has_dropped_are_not_missing(announced):
    announced.publish()
    world = announced.ledger.world
    days = world.column(
        "select distinct 'runs_' || to_char(scheduled_for at time zone 'UTC', 'YYYYMMDD') from runs"
    )
    for day in days:
        assert drop_day(world.db, day)

    report = announced.check()

    assert (report.findings, report.runs) == ([], 0)
    assert report.events.outcomes > 0


def test_a_day_that_is_dropped_during_the_check_has_no_missing_runs(world):
    with connect(world.url, application="test", autocommit=True) as connection:
        reader, lost = LedgerReader(connection), str(uuid4())
        for day, missing in ((world.now(), {lost}), (world.now() - timedelta(days=900), set())):
            midnight = day.replace(hour=0, minute=0, second=0, microsecond=0)
            span = Span(midnight, midnight, midnight + timedelta(days=1), FIRST_ID, LAST_ID)
            with reader.step():
                assert reader.missing_runs(span, [lost]) == missing


def test_a_deleted_run_of_another_namespace_or_outside_of_the_window_is_not_reported(announced):
    a_deleted_run(announced)
    announced.publish()
    world = announced.ledger.world
    world.db.execute("insert into namespaces (name) values ('other')")

    assert announced.check(namespaces=("other",)).findings == []
    assert announced.check(since=world.now()).findings == []


def test_a_run_that_has_changed_since_its_event_is_not_missing(announced):
    """It is redriven now, so it is not settled, and was not read with the others."""
    announced.publish()
    world = announced.ledger.world
    found = dead_letters.find(world.db, DeadSelection(runs=[announced.ledger.dead]))
    assert dead_letters.redrive(world.db, TOPICS, found, shards=SHARDS)

    report = announced.check()

    assert report.findings == []
    assert report.runs == 6


def test_a_run_that_ended_before_the_comparison_began_is_not_reported_as_deleted(announced):
    """The event may be that of an installation that used the topic before."""
    a_deleted_run(announced)
    announced.older = False
    announced.publish()

    assert announced.check().findings == []


def test_every_read_of_kafka_and_of_the_outbox_is_paced(announced):
    announced.publish()
    pacer = Pacer(1)
    announced.ledger.check(pacer=pacer)
    alone = pacer.steps
    pacer = Pacer(1)

    announced.check(pacer=pacer)

    # At least one of the outbox, the opening, and one read.
    assert pacer.steps >= alone + 3


def test_the_types_of_events_are_those_that_are_published():
    assert (events.SETTLED, events.DEAD) == (lifecycle.SETTLED, lifecycle.DEAD)


@pytest.fixture
def addressed(command_line, announced, monkeypatch) -> Announced:
    monkeypatch.setenv("NOONMARK_KAFKA_BOOTSTRAP", announced.config.bootstrap)
    monkeypatch.setenv("NOONMARK_TOPIC_PREFIX", announced.topics.prefix)
    return announced


@pytest.mark.parametrize(
    ("plant", "kind", "told"),
    [
        (a_lost_event, "unannounced", "Consumers still believe that the run has not ended"),
        (a_lost_dead_letter_event, "death_unannounced", "Consumers of dead letters do not know of it"),
        (
            a_success_announced_as_dead,
            "announced_otherwise",
            "Consumers believe the outcome that was announced",
        ),
    ],
)
def test_the_remedy_of_a_verdict_says_what_consumers_believe(announced, plant, kind, told):
    plant(announced)
    announced.publish()

    (finding,) = [one for one in announced.check().findings if one.rule == "S6"]

    assert finding.kind == kind
    assert told in finding.remedy
    assert "queues the run again" not in finding.remedy


def test_the_command_says_what_was_compared(addressed):
    a_rewritten_result(addressed)
    addressed.publish()

    called = call("verify", "--events", code=1)
    found = json.loads(call("verify", "--events", "--json", code=1).stdout)

    assert "differ in result" in called.stdout
    assert "\n7 outcomes compared with " in called.stdout
    assert called.stderr == ""
    assert (found["rules"]["S17"], found["events"]["compared"]) == (1, 7)
    assert "S4" in found["rules"]
    assert "S4" not in found["unjudged"]
    assert json.loads(call("verify", "--json").stdout)["events"] is None


def test_kafka_that_does_not_answer_exits_3(addressed, monkeypatch):
    monkeypatch.setenv("NOONMARK_KAFKA_BOOTSTRAP", "127.0.0.1:1")

    assert "cannot connect to Kafka at 127.0.0.1:1" in call("verify", "--events", code=3).stderr


def test_a_topic_that_does_not_exist_exits_2(addressed):
    """The prefix is probably wrong."""
    told = call("verify", "--events", code=2).stderr

    assert f"{addressed.topics.prefix}.lifecycle" in told
    assert "check NOONMARK_TOPIC_PREFIX" in told


def test_a_full_disk_is_named(addressed, monkeypatch, tmp_path):
    addressed.publish()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))

    assert "set TMPDIR" in call("verify", "--events", code=1).stderr
