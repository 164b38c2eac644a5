"""A good history: what a sound system leaves, in all its variety. `planted` puts faults into it."""

from __future__ import annotations

from typing import Any

from tests.chaos import good_workflow
from tests.chaos.good_rows import (
    BOUND,
    END,
    FIRST,
    FORMER,
    JOBS,
    MADE,
    NOON,
    NS,
    QUEUES,
    SECOND,
    SHARDS,
    STEP,
    after,
    call,
    die,
    every,
    letter,
    run,
    shard_of_job,
    tell,
    tell_retry,
)

from noonmark.verify import Expected, History
from noonmark.verify.history import (
    Attempt,
    Drain,
    Job,
    Message,
    Owners,
    Passed,
    Pause,
    Rejection,
    Run,
    Sighting,
    Span,
    Version,
    Write,
)

__all__ = [
    "BOUND",
    "END",
    "FIRST",
    "FORMER",
    "MADE",
    "NOON",
    "NS",
    "QUEUES",
    "SECOND",
    "SHARDS",
    "STEP",
    "after",
    "call",
    "every",
    "expected",
    "good",
    "letter",
    "run",
    "tell",
]


def _runs() -> list[Run]:
    again = {"attempt": 2, "fence": 2, "started_at": after(3), "finished_at": after(3.1), "error": "no luck"}
    ended = {"result": None}
    lost = ended | {"losses": 1, "error": "the worker was lost", "owner": None, "epoch": None}
    never = ended | {"attempt": 0, "started_at": None, "owner": None, "epoch": None}
    never["holds_slot"] = False
    return [
        run("now", "now", NOON),
        run("once", "once", NOON),
        *(run(f"tick{n}", "tick", after(n)) for n in range(3)),
        *(run(f"tock{n}", "tock", after(n)) for n in range(2)),
        # Its worker was lost; another took it up.
        run(
            "tock2", "tock", after(2), fence=2, started_at=after(9), finished_at=after(9.1), losses=1, owner=2
        ),
        run("alone0", "alone", NOON, finished_at=after(15)),
        run("alone1", "alone", after(10), state="skipped", reason="overlap", **never),
        run("alone2", "alone", after(20)),
        run("flaky", "flaky", NOON, **again),
        run("doomed", "doomed", NOON, **again, **ended, state="dead", reason="retries_exhausted"),
        run("stopped", "stopped", NOON, fence=2, state="cancelled", finished_at=after(1), **never),
        run("maybe", "maybe", NOON, fence=2, state="unknown", reason="lost", finished_at=after(6), **lost),
        # Died, and was redriven: its budget began again. One came back from a drain, and one snoozed.
        run("risen", "risen", NOON, attempt=1, fence=3, started_at=after(20), finished_at=after(20.1)),
        run("handed", "handed", NOON, fence=3, started_at=after(9), finished_at=after(9.1)),
        run("ledgered", "ledgered", NOON),
        *(run(f"crowd{n}", "crowd", after(n), lane=n % 3) for n in range(40)),
        *(run(f"narrow{n}", "narrow", after(2 * n)) for n in range(2)),
    ]


def _attempts() -> list[Attempt]:
    lost, failed = ("the worker was lost", None), ("no luck", FIRST.id)
    rows = [
        ("tock2", 1, 1, "lost", after(2) + STEP, after(8), *lost),
        ("flaky", 1, 1, "failed", NOON + STEP, after(0.1), *failed),
        ("doomed", 1, 1, "failed", NOON + STEP, after(0.1), *failed),
        ("doomed", 2, 2, "failed", after(3), after(3.1), *failed),
        ("maybe", 1, 1, "lost", NOON + STEP, after(6), *lost),
        ("risen", 1, 1, "failed", NOON + STEP, after(0.1), *failed),
        ("risen", 2, 2, "failed", after(3), after(3.1), *failed),
        ("handed", 1, 1, "handed_back", NOON + STEP, after(1), None, FIRST.id),
        ("handed", 2, 1, "snoozed", after(2), after(2.1), None, FIRST.id),
    ]
    return [Attempt(*row, after(2) if row[0] == "tock2" else NOON) for row in rows]


def good() -> History:
    """What a sound system leaves: successes, a retry, a loss, a skip, a death, a cancel, an unknown."""
    runs = [*_runs(), *good_workflow.runs()]
    attempts = [*_attempts(), *good_workflow.attempts()]
    started = {
        (r.id, r.fence): r.started_at for r in runs if r.started_at and not r.is_workflow and r.id != "maybe"
    }
    started |= {(a.run, a.fence): a.started_at for a in attempts}
    by_id = {r.id: r for r in runs}
    numbers = {(r.id, r.fence): r.attempt for r in runs} | {(a.run, a.fence): a.attempt for a in attempts}
    calls = [
        call(by_id[name], fence, at + STEP, numbers[name, fence])
        for (name, fence), at in started.items()
        if at is not None
    ]
    # The first worker was lost with this run.
    calls = [c._replace(pid=FIRST.pid) if (c.run, c.fence) == ("tock2", 1) else c for c in calls]
    # The worker gave this one back before its handler began.
    calls = [c for c in calls if (c.run, c.fence) != ("handed", 1)]
    messages = [
        Message("runs.low", n, name, fence, NS, 1, by_id[name].scheduled_for)
        for n, (name, fence) in enumerate(sorted(started))
    ]
    retried = {("flaky", 1), ("doomed", 1), ("risen", 1), ("handed", 2)}
    return History(
        judged_at=END,
        jobs=[Job(f"j-{name}", NS, name, _state(name), 1, MADE, MADE, shard_of_job(name)) for name in JOBS],
        versions=[Version(f"j-{name}", 1, schedule, MADE, None, *_rest(rest)) for name, (schedule, rest) in JOBS.items()],
        runs=runs,
        attempts=attempts,
        dead_letters=[letter("doomed")],
        rejections=[Rejection("submissions", 0, 1, "bad", "wrong"), Rejection("submissions", 0, 3, None, "no JSON")],
        known_events={f"e-{name}" for name in JOBS},
        messages=messages,
        passed=[
            *(Passed(m.topic, 0, m.offset, m.run, m.fence) for m in messages),
            Passed("submissions", 0, 0, event="e-now"),
            Passed("submissions", 0, 1, event="bad"),
            Passed("submissions", 0, 3),
        ],
        calls=sorted(calls, key=lambda c: c.at),
        writes=[Write("ledgered", 1)],
        lifecycle=[
            *map(tell, runs),
            *(tell_retry(a, by_id[a.run]) for a in attempts if (a.run, a.fence) in retried),
            tell(_died(by_id["risen"]))._replace(event="t-died"),
            tell(good_workflow.died())._replace(event="t-flow-died"),
        ],
        deaths=[*(die(letter(name), 2, attempts) for name in ("doomed", "risen")), good_workflow.death()],
        workers=[FORMER, FIRST, SECOND],
        shards=SHARDS,
        zone_releases={1},
        slot_holders=set(),
        graphs={("j-flow", 1): good_workflow.GRAPH},
        open_states=[],
        sightings=[Sighting("once", "queued", 1), Sighting("once", "succeeded", 1)],
        children=[],
        faults=[],
        pauses=[Pause("j-tick", after(30), after(40))],
        left_over=dict.fromkeys(QUEUES, 0),
        poisoned=[Span("poison", NOON, after(3))],
        limits={(NS, "stripe"): 1},
        owners=[Owners("trigger", 4, 4)],
        drains=[Drain("return of the broker", 950.0, 1000.0)],
        exits=[],
        claim_p99_ms=40.0,
    )  # fmt: skip


def _died(of: Run) -> Run:
    """The run as it was before it was redriven."""
    dead = {"state": "dead", "reason": "retries_exhausted", "attempt": 2, "fence": 2, "error": "no luck"}
    return of._replace(**dead, result=None, started_at=after(3), finished_at=after(3.1))


def _state(name: str) -> str:
    return "cancelled" if name == "stopped" else "completed"


def _rest(given: dict[str, Any]) -> tuple[Any, ...]:
    known = {"max_attempts": 4, "delivery": "at_least_once", "overlap": "allow", "limits": ()} | given
    known["reports_later"] = False
    return tuple(known.values())


def expected() -> Expected:
    """What was asked for: the schedules are the plan, of jobs due on arrival one run."""
    ends = {
        "doomed": {"dead"},
        "flow": {"succeeded", "dead"},
        "stopped": {"cancelled"},
        "maybe": {"unknown"},
        "alone": {"succeeded", "skipped"},
    }
    return Expected(
        instants={(NS, name): None if schedule is None else [] for name, (schedule, _) in JOBS.items()},
        ends={(NS, name): frozenset(ends.get(name, {"succeeded"})) for name in JOBS},
        acknowledged={f"e-{name}" for name in JOBS} | {"bad"},
        rejected={"bad"},
    )
