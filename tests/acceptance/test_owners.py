"""Shards and slices move when their owner is killed or stopped, and are shared while both live."""

import psycopg
import pytest
from tests.support.cluster import Cluster, Node
from tests.support.publish import Load

OWNED = "noonmark_owned_shards"
CLAIM = "application_name = 'noonmark-claim'"
PASSES = "noonmark_loop_iterations_total"


def two_owners(noonmark: Cluster, service: str) -> list[Node]:
    """The two processes of a service, each owning something. Who owns what is decided by random ids."""
    nodes = [node for node in noonmark.nodes if node.service == service]

    def shares() -> list[float]:
        return [node.metric(OWNED, role=service) for node in nodes]

    for _ in range(10):
        noonmark.wait(lambda: sum(shares()) == 4, f"all shards of {service} to have one owner")
        if all(shares()):
            # What an alert holds the sum against.
            assert [node.metric("noonmark_shards", role=service) for node in nodes] == [4, 4]
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hurt", "within"), [("killed", 5.0), pytest.param("stopped", 10.0, marks=pytest.mark.slow)]
)
def test_due_work_goes_on_when_an_owner_is(noonmark: Cluster, hurt: str, within: float) -> None:
    noonmark.start("intake", "worker", "trigger", "trigger", "dispatcher", "dispatcher")
    triggers, dispatchers = two_owners(noonmark, "trigger"), two_owners(noonmark, "dispatcher")
    with noonmark.standing_clock():
        load = Load()
        load.once(400, noonmark.soon(1), spread_seconds=within + 2)
        noonmark.take_in(load)
    noonmark.wait(lambda: noonmark.states(load.namespace).get("succeeded", 0) >= 20, "the work to flow")
    victims = {"claim": triggers[0], "relay": dispatchers[0]}
    passes = {loop: victim.metric(PASSES, loop=loop) for loop, victim in victims.items()}
    for victim in victims.values():
        victim.kill() if hurt == "killed" else victim.pause()
    noonmark.settle(load)
    if hurt == "stopped":
        for loop, victim in victims.items():
            # It goes on with what it had in mind, which is somebody else's by now.
            victim.resume()
            noonmark.wait(lambda: victim.metric(PASSES, loop=loop) > passes[loop] + 1, f"the {loop} to go on")  # noqa: B023
    noonmark.assert_clean(load)
    due_to_queued, queued_to_started = longest_waits(noonmark, load)
    assert due_to_queued <= within
    assert queued_to_started <= within


@pytest.mark.slow
def test_a_trigger_stopped_inside_its_transaction_holds_nobody_up(noonmark: Cluster) -> None:
    noonmark.start("intake", "worker", "dispatcher")
    victim = noonmark.start("trigger", claim_batch="400")[0]

    def claiming(how: str) -> bool:
        return noonmark.value(f"select count(*) from pg_stat_activity where {CLAIM} and {how}") == 1

    with psycopg.connect(noonmark.dsn) as blocker:
        with noonmark.standing_clock():
            load = Load()
            load.interval(200, noonmark.soon(1), instants=3)
            noonmark.take_in(load)
            # Whoever plans takes this table after the timers: the claim waits here, its timers locked.
            blocker.execute("lock table waits in share mode")
        noonmark.wait(lambda: claiming("wait_event_type = 'Lock'"), "the claim to be caught", 10)
        victim.pause()
        blocker.rollback()
    noonmark.wait(lambda: claiming("state = 'idle in transaction'"), "the claim to wait for its client")
    noonmark.start("trigger")
    noonmark.settle(load)
    victim.resume()
    report = noonmark.assert_clean(load)
    assert report["runs"] == 600
    assert longest_waits(noonmark, load)[0] <= 10


def test_two_triggers_and_two_dispatchers_share_one_burst(noonmark: Cluster) -> None:
    noonmark.start("intake", "worker", "trigger", "trigger", "dispatcher", "dispatcher")
    triggers, dispatchers = two_owners(noonmark, "trigger"), two_owners(noonmark, "dispatcher")
    with noonmark.standing_clock():
        load = Load()
        load.once(2000, noonmark.soon(1))
        noonmark.take_in(load)
    report = noonmark.assert_clean(load)
    assert report["runs"] == report["calls"] == 2000
    claimed = [node.metric("noonmark_claimed_total") for node in triggers]
    assert sum(claimed) == 2000
    assert min(claimed) > 0
    # A run message each, and the events of what they ended as.
    relayed = [node.metric("noonmark_relay_batch_size_sum") for node in dispatchers]
    assert sum(relayed) >= 2000
    assert min(relayed) > 0
