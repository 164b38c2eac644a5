"""Who comes to the same job at the same moment: claims, orders, backfills. The checker judges what came of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from tests.chaos.loads import ChaosLoad, Publisher
from tests.chaos.tally import Tally
from tests.support.cli import Called
from tests.support.cluster import SERVICES, Cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

JOBS = 12
INSTANTS = 6


def order(noonmark: Cluster, load: ChaosLoad, kind: str, name: str, **more: Any) -> None:
    noonmark.publish(load, events=[load._order(kind, name, **more)])


def test_a_claim_a_backfill_and_manual_triggers_race_for_one_overlap_slot(
    noonmark: Cluster, command: Callable[..., Called], tally: Tally
) -> None:
    noonmark.start(*SERVICES, "trigger")
    load = ChaosLoad()
    with noonmark.standing_clock():
        first = noonmark.soon(1)
        slow = {"handler": "chaos.slow", "payload": {"seconds": 0.4}}
        jobs = load.interval(JOBS, first, INSTANTS, overlap="skip", **slow)
        noonmark.take_in(load)
    dice = Random(1)
    noonmark.wait(
        lambda: noonmark.soon(0) > first + timedelta(seconds=2), "the first instants to have passed"
    )
    for job in jobs:
        until = first + timedelta(seconds=2)
        span = ("--from", first.isoformat(), "--until", until.isoformat(), "--mode", "all")
        command("backfill", "start", job.name, "--namespace", load.namespace, *span, "--yes")
        for _ in range(3):
            order(noonmark, load, "trigger", dice.choice(jobs).name)
    for job in jobs:
        job.ends.append("skipped")
    noonmark.wait(
        lambda: not noonmark.value("select count(*) from backfills where state = 'running'"), "backfills", 60
    )
    report = noonmark.assert_clean(load, within=60)
    origins = dict(noonmark.rows("select origin, count(*) from runs where state = 'succeeded' group by 1"))
    tally.figures.append(
        f"one overlap slot, {report['runs']} runs came to it: {origins} ran, never two at once"
    )
    assert origins.keys() >= {"schedule", "backfill"}


def test_pause_edit_and_cancel_race_claims(noonmark: Cluster, tally: Tally) -> None:
    noonmark.start(*SERVICES, "trigger")
    load, dice = ChaosLoad(), Random(2)
    with noonmark.standing_clock():
        first = noonmark.soon(1)
        jobs = load.interval(3 * JOBS, first, 2 * INSTANTS, handler="chaos.slow", payload={"seconds": 0.1})
        noonmark.take_in(load)
    for job in jobs:
        job.ends += ["skipped", "cancelled"]
        # What becomes of their instants depends on the orders: the schedule is the plan.
        job.instants = []
    publisher = Publisher(noonmark)
    documents = {event["data"]["name"]: event["data"] for event in load.events}
    moments = []
    for index, job in enumerate(jobs):
        at = first + timedelta(seconds=dice.randrange(INSTANTS - 2) + dice.uniform(-0.08, 0.02))
        if index % 3 == 0:
            moments += [
                (at, "pause", job.name, {}),
                (at + timedelta(seconds=1), "resume", job.name, {"missed": "all"}),
            ]
        elif index % 3 == 1:
            moments.append((at, "update", job.name, {**documents[job.name], "priority": "high"}))
        else:
            moments.append((at, "cancel", job.name, {}))
    for at, kind, name, more in sorted(moments, key=lambda moment: moment[0]):
        noonmark.wait(lambda: noonmark.soon(0) >= at, "the moment of an order", 30)  # noqa: B023
        fields = {field: value for field, value in more.items() if field not in {"name", "namespace"}}
        publisher.publish(load, [load._order(kind, name, **fields)])
    publisher.flush()
    noonmark.wait(lambda: not noonmark.lag(".submissions"), "every order to be taken in")
    assert noonmark.rows("select reason, errors from rejections") == []
    report = noonmark.assert_clean(load, within=60)
    done = dict(noonmark.rows("select state, count(*) from runs group by 1"))
    jobs_now = dict(noonmark.rows("select state, count(*) from jobs group by 1"))
    tally.figures.append(
        f"{len(moments)} orders within 0.1 s of an instant: {report['planned']} instants, all accounted for: {done},"
        f" jobs {jobs_now}"
    )
    assert jobs_now["cancelled"] == JOBS
