"""Shards and slices move when their owner is killed or stopped, and are shared while both live."""

import pytest
from tests.support.cluster import Cluster, Node
from tests.support.publish import Load, soon

OWNED = "noonmark_owned_shards"


def pair(noonmark: Cluster, service: str) -> list[Node]:
    """Two processes of a service that both own something. Who owns what is decided by random ids."""
    nodes = noonmark.start(service, service)

    def shares(nodes: list[Node]) -> list[float]:
        return [node.metric(OWNED, role=service) for node in nodes]

    for _ in range(10):
        noonmark.wait(lambda: sum(shares(nodes)) == 4, f"all shards of {service} to have one owner")
        if all(shares(nodes)):
            return nodes
        idle = min(nodes, key=lambda node: node.metric(OWNED, role=service))
        nodes.remove(idle)
        assert idle.stop() == 0
        nodes += noonmark.start(service)
    raise AssertionError(f"ten pairs of {service}, and each time one owned everything")


def longest_waits(noonmark: Cluster, load: Load) -> tuple[float, float]:
    """Seconds from due to queued (the trigger's part), and from queued to started (the dispatcher's)."""
    return noonmark.rows(
        "select max(extract(epoch from queued_at - scheduled_for))::float8,"
        " max(extract(epoch from started_at - queued_at))::float8 from runs where namespace = %s",
        load.namespace,
    )[0]


@pytest.mark.parametrize(("hurt", "within"), [("killed", 5.0), ("stopped", 10.0)])
def test_due_work_goes_on_when_an_owner_is(noonmark: Cluster, hurt: str, within: float) -> None:
    noonmark.start("intake", "worker")
    triggers, dispatchers = pair(noonmark, "trigger"), pair(noonmark, "dispatcher")
    load = Load()
    load.once(400, soon(2), spread_seconds=within + 2)
    noonmark.publish(load)
    noonmark.wait(lambda: noonmark.states(load.namespace).get("succeeded", 0) >= 20, "the work to flow")
    for victim in (triggers[0], dispatchers[0]):
        victim.kill() if hurt == "killed" else victim.pause()
    noonmark.settle(load)
    if hurt == "stopped":
        # They go on with what they had in mind, which is somebody else's by now.
        for victim in (triggers[0], dispatchers[0]):
            victim.resume()
        noonmark.wait(
            lambda: triggers[0].metric("noonmark_owner_changes_total") > 1, "the stopped trigger to look up"
        )
    noonmark.assert_clean(load)
    due_to_queued, queued_to_started = longest_waits(noonmark, load)
    assert due_to_queued <= within
    assert queued_to_started <= within


def test_a_trigger_stopped_inside_its_transaction_holds_nobody_up(noonmark: Cluster) -> None:
    noonmark.start("intake", "worker", "dispatcher")
    victim = noonmark.start("trigger", claim_batch="400")[0]
    load = Load()
    load.interval(200, soon(3), instants=3)
    noonmark.publish(load)
    noonmark.wait(lambda: noonmark.value("select count(*) from timers") == 200, "the jobs to be taken in")

    def stopped_with_locks() -> bool:
        victim.pause()
        held = noonmark.value(
            "select count(*) from pg_locks join pg_class on pg_class.oid = pg_locks.relation"
            " join pg_stat_activity using (pid) where relname = 'timers' and mode = 'RowExclusiveLock'"
            " and state like 'idle in transaction%%' and application_name = 'noonmark-claim' and %s > 0",
            1,
        )
        if not held:
            victim.resume()
        return bool(held)

    noonmark.wait(stopped_with_locks, "the trigger to be caught with locks", 10)
    noonmark.start("trigger")
    noonmark.settle(load)
    victim.resume()
    report = noonmark.assert_clean(load)
    assert report["runs"] == 600
    assert longest_waits(noonmark, load)[0] <= 10


def test_two_triggers_and_two_dispatchers_share_one_burst(noonmark: Cluster) -> None:
    noonmark.start("intake", "worker")
    triggers, dispatchers = pair(noonmark, "trigger"), pair(noonmark, "dispatcher")
    load = Load()
    load.once(2000, soon(4))
    noonmark.publish(load)
    report = noonmark.assert_clean(load)
    assert report["runs"] == report["calls"] == 2000
    claimed = [node.metric("noonmark_claimed_total") for node in triggers]
    assert sum(claimed) == 2000
    assert min(claimed) > 0
    # A run message each, and the events of what they ended as.
    relayed = [node.metric("noonmark_relay_batch_size_sum") for node in dispatchers]
    assert sum(relayed) >= 2000
    assert min(relayed) > 0
