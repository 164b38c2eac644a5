"""The jobs of a day: every kind of schedule and every policy, drawn by the seed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Any

NAMESPACE = "simulated"
LIMITS = {"few": 2, "some": 4}
ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe")
JOBS = 320


def documents(dice: Random, begin: datetime, end: datetime) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield the jobs of a day and the second at which each is submitted; no instant lies after the end."""
    length = (end - begin).total_seconds()
    for number in range(JOBS):
        # Most are there from the beginning, as yesterday's jobs are.
        at = 0.0 if number % 4 else dice.uniform(0, length * (0.3 if number % 5 else 0.8))
        document = {
            "namespace": NAMESPACE,
            "name": f"job-{number:03}",
            "type": "python",
            "handler": "tests.virtual",
            "priority": dice.choice(("high", "normal", "normal", "low")),
            "retry": {
                "max_retries": dice.choice((0, 1, 3)),
                "delay_seconds": dice.choice((1, 20, 120)),
            },
            "timeout_seconds": dice.choice((30, 300, 600)),
            "delivery": dice.choice(("at_least_once", "at_least_once", "at_least_once", "at_most_once")),
            **_schedule(number, dice, begin, end, at),
        }
        if dice.random() < 0.25:
            document["limits"] = [{"name": dice.choice(sorted(LIMITS))}]
        yield at, document


def _schedule(number: int, dice: Random, begin: datetime, end: datetime, at: float) -> dict[str, Any]:
    zone, until = dice.choice(ZONES), {"end": end.isoformat()}
    kind = number % 5
    if kind == 0:
        due = begin + timedelta(seconds=dice.uniform(at, (end - begin).total_seconds()))
        return {"run_at": due.isoformat()}
    if kind in {1, 2}:
        text = f"{dice.choice((0, 15, 30, 45))} {dice.choice(('*/4', '*/6', '*/8', '1,9,17'))} * * *"
        schedule: dict[str, Any] = {"cron": text, "timezone": zone}
    elif kind == 3:
        schedule = {"every": dice.choice(("PT3H", "PT4H", "PT400M"))}
    else:
        hours = ",".join(map(str, sorted(dice.sample(range(24), 4))))
        schedule = {
            "rrule": f"FREQ=DAILY;BYHOUR={hours};BYMINUTE={dice.choice((0, 30))};BYSECOND=0",
            "dtstart": (begin - timedelta(days=3)).replace(tzinfo=None).isoformat(),
            "timezone": zone,
        }
    return {
        "schedule": schedule | until,
        "misfire": dice.choice(("fire_all", "fire_latest", "skip")),
        "overlap": dice.choice(("allow", "skip", "queue_one", "cancel_running")),
    }


def requests(dice: Random, begin: datetime, end: datetime) -> Iterator[tuple[float, str, dict[str, Any]]]:
    """Yield pauses with their resumes, cancels and triggers of recurring jobs, by the second of the day."""
    length = (end - begin).total_seconds()
    numbers = [number for number in range(JOBS) if number % 5 and number % 4]
    for number in dice.sample(numbers, 40):
        job = {"namespace": NAMESPACE, "name": f"job-{number:03}"}
        at = dice.uniform(0.05, 0.9) * length
        what = dice.choice(("pause", "pause", "trigger", "trigger", "cancel"))
        if what != "pause":
            yield at, what, job
            continue
        until = min(at + dice.uniform(60, 6 * 3600), length - 60)
        yield at, "pause", job
        yield until, "resume", job | {"missed": dice.choice(("skip", "latest", "all"))}
