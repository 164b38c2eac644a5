"""Services are killed at random moments while load keeps coming; nothing is lost and nothing ends twice."""

from random import Random

import pytest
from tests.chaos.tally import Held, Row, Tally, judge
from tests.support.cluster import SERVICES, Cluster
from tests.support.publish import Load

pytestmark = [pytest.mark.slow, pytest.mark.timeout(0)]

RETRY = {"max_retries": 3, "delay_seconds": 0.2, "jitter": "none"}


def add_work(noonmark: Cluster, load: Load) -> int:
    """A round's work, in every lane; returns how many runs end at once, without waiting for a time."""
    load.now(60)
    load.now(10, "chaos.slow", payload={"seconds": 0.5})
    load.now(10, "chaos.flaky", payload={"fails": 1}, retry=RETRY)
    load.http(10, f"{noonmark.target_url}/ok")
    load.once(60, noonmark.soon(0.5), spread_seconds=2)
    return 90


@pytest.mark.parametrize("spares", [0, 1])
def test_random_kills_under_load_lose_nothing(
    noonmark: Cluster, tally: Tally, spares: int, request: pytest.FixtureRequest
) -> None:
    rounds, seed = request.config.getoption("--chaos-rounds"), request.config.getoption("--chaos-seed")
    dice = Random(seed)
    title = f"random, seed {seed}" + (", one of two" if spares else "")
    rows = {service: Row(service, title) for service in SERVICES}
    # With another of its kind beside it, what a victim held moves there before it has lapsed here.
    noonmark.start(*(SERVICES * spares))
    order = [service for _ in range(rounds) for service in SERVICES][:rounds]
    dice.shuffle(order)
    load = Load()
    for service in order:
        published = len(load.events)
        at_once = add_work(noonmark, load)
        # Read before: what is done of the new work by the next line must not be waited for again.
        before = progress(noonmark, load, service)
        noonmark.publish(load, events=load.events[published:])
        victim = dice.choice([n for n in noonmark.nodes if n.service == service and n.expected_alive])
        # The moment is a matter of progress, not of time: at any speed of the machine it is under load.
        moment = before + dice.randrange(1, at_once)
        noonmark.wait(lambda: progress(noonmark, load, service) >= moment, f"number {moment}", 60)  # noqa: B023
        victim.kill()
        rows[service].held.append(Held.by(noonmark, victim))
        noonmark.start(service)
    recurring = len(load.events)
    with noonmark.standing_clock():
        load.interval(6, noonmark.soon(1.5), instants=3)
        noonmark.take_in(load, events=load.events[recurring:])
    verdict = Row("all four", title)
    tally.rows += [*(row for row in rows.values() if row.held), verdict]
    judge(noonmark, load, verdict, within=60)


def progress(noonmark: Cluster, load: Load, service: str) -> int:
    """How far a service has come: jobs taken in, or runs that have ended."""
    jobs = "select count(*) from jobs where namespace = %s"
    ended = "select count(*) from runs where namespace = %s and finished_at is not null"
    return noonmark.value(jobs if service == "intake" else ended, load.namespace)
