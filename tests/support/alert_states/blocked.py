"""A session that someone left open in a transaction, with locks."""

from __future__ import annotations

import psycopg
from tests.support.alert_states.ground import Ground, Installation
from tests.support.publish import Load, soon
from tests.support.recordings import Recording

FAR_AWAY = "2099-01-01T00:00:00Z"
TIMERS = 400
DEAD_ROWS = 210_000


def transaction_idle(ground: Ground) -> Recording:
    """A transaction stays open for minutes with a snapshot, and with locks on tables of intake and observer."""
    place = ground.installation(late_after_seconds="86400")
    noonmark = place.noonmark
    place.start("observer")
    load = Load()
    load.interval(1, soon(1), 600)
    for index in range(TIMERS):
        load._job({"type": "python", "handler": "chaos.record", "run_at": FAR_AWAY}, index)
    noonmark.take_in(load)
    place.scrape(2)
    with psycopg.connect(noonmark.dsn) as session:
        session.execute("set transaction isolation level repeatable read")
        session.execute("select count(*) from runs")
        session.execute("lock table inbox, observer_offsets in access exclusive mode")
        _wait_for_consequences(place)
        session.rollback()
    return place.recording


def _wait_for_consequences(place: Installation) -> None:
    noonmark, waiting = place.noonmark, Load()
    waiting.now(150)
    noonmark.publish(waiting)
    # As an application does that moves the same timers again and again; vacuum may not remove the old rows.
    while noonmark.value(DEAD) < DEAD_ROWS:
        with noonmark.database.transaction():
            for _ in range(20):
                noonmark.database.execute("update timers set fire_at = fire_at + interval '1 second'")
    noonmark.wait(lambda: place.metric("trigger", "oldest_xmin_seconds") > 305, "an old snapshot", 420)
    noonmark.wait(lambda: place.metric("trigger", "dead_rows", table="timers") > 200_000, "dead rows")
    place.scrape(18)


DEAD = "select n_dead_tup from pg_stat_user_tables where relname = 'timers'"
