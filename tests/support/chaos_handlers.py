"""Python handlers of the chaos and acceptance tests: each call leaves a line in the target's log.

A worker loads them with `NOONMARK_HANDLERS=tests.support.chaos_handlers`. The log is the file that
`NOONMARK_TEST_TARGET_LOG` names; a line is one write in append mode, so that many processes share it
and a kill never leaves half of one that counts.
"""

import asyncio
import ctypes
import json
import os
import re
import resource
import signal
import time
from pathlib import Path

from noonmark.handlers import Context, handler

LOG = os.open(os.environ["NOONMARK_TEST_TARGET_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
LOOK_SECONDS = 0.02
CLOCK = 5 if "NOONMARK_TEST_CLOCK" in os.environ else time.CLOCK_REALTIME
"""Of calls: where a test turns this process's clock, CLOCK_REALTIME_COARSE still shows the time, to some ms."""


def note(kind: str, ctx: Context, **more: str | None) -> None:
    """Append one line: what happened, to which attempt, and when by this host's clock.

    `returns` says what the handler returns if it succeeds, so that the recorded result can be judged.
    """
    line = {
        "event": kind,
        "run": str(ctx.run_id),
        "fence": ctx.fence,
        "attempt": ctx.attempt,
        "key": ctx.idempotency_key,
        "scheduled_for": ctx.scheduled_for.isoformat(),
        "namespace": ctx.namespace,
        "at": time.clock_gettime(CLOCK),
        "pid": os.getpid(),
        "via": "python",
        **more,
    }
    os.write(LOG, json.dumps(line).encode() + b"\n")


@handler("chaos.record")
def record(ctx: Context) -> None:
    """Be called, and say so."""
    note("start", ctx, returns=None)


@handler("chaos.lower_limit")
def lower_limit(ctx: Context) -> None:
    """Leave the process with hardly a file that it may open."""
    note("start", ctx, returns=None)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (8, most))


@handler("chaos.open_file")
def open_file(ctx: Context) -> None:
    """Need a file."""
    note("start", ctx, returns=None)
    Path(__file__).read_bytes()


@handler("chaos.flaky")
def flaky(ctx: Context) -> str:
    """Fail as often as the payload's `fails` says, then succeed."""
    note("start", ctx, returns=f"attempt {ctx.attempt}")
    if ctx.attempt <= ctx.payload["fails"]:
        raise RuntimeError(f"attempt {ctx.attempt} fails as planned")
    return f"attempt {ctx.attempt}"


RESULTS = {
    "a NUL": {"x": "a\0b"},
    "64 KB": "x" * 65_000,
    "too much": "x" * 10_000_000,
    "null": None,
    "a list": [1, [2], {}],
    "half a surrogate pair": "\ud800",
    "no number": float("nan"),
    "no JSON": object(),
    "deep": None,
}
for _ in range(5_000):
    RESULTS["deep"] = [RESULTS["deep"]]


@handler("chaos.returns")
def returns(ctx: Context) -> object:
    """Return what the payload's `what` names: things that are hard to store."""
    note("start", ctx)
    return RESULTS[ctx.payload["what"]]


@handler("chaos.slow")
async def slow(ctx: Context) -> None:
    """Take the payload's `seconds` on the event loop."""
    note("start", ctx, returns=None)
    await asyncio.sleep(ctx.payload["seconds"])
    note("end", ctx)


doors: dict[str, asyncio.Task[None]] = {}
"""One watcher per gate, however many runs wait at it."""


async def opened(gate: str) -> None:
    """Return when the file exists."""
    while not await asyncio.to_thread(os.path.exists, gate):  # noqa: ASYNC110 - a file has no event
        await asyncio.sleep(LOOK_SECONDS)


@handler("chaos.gate")
async def gate(ctx: Context) -> None:
    """Run until the file exists that the payload's `gate` names: how long is the test's decision."""
    note("start", ctx)
    name = ctx.payload["gate"]
    if name not in doors:
        doors[name] = asyncio.create_task(opened(name))
    await asyncio.shield(doors[name])
    note("end", ctx)


@handler("chaos.blocking_gate")
def blocking_gate(ctx: Context) -> None:
    """The same in a thread, which nobody can interrupt."""
    note("start", ctx)
    door = Path(ctx.payload["gate"])
    while not door.exists():
        time.sleep(LOOK_SECONDS)
    note("end", ctx)


@handler("chaos.insert")
def insert(ctx: Context) -> str:
    """Write a row in the transaction of the outcome, and wait at the payload's gate, if it names one."""
    with ctx.transaction() as connection:
        connection.execute("insert into effects (run_id, fence) values (%s, %s)", [ctx.run_id, ctx.fence])
    note("start", ctx, returns=f"fence {ctx.fence}")
    door = ctx.payload.get("gate")
    while door and not Path(door).exists():
        time.sleep(LOOK_SECONDS)
    return f"fence {ctx.fence}"


@handler("chaos.patient")
def patient(ctx: Context) -> None:
    """Run in a thread until somebody cancels the run, then take the payload's `seconds` to end."""
    note("start", ctx)
    while not ctx.cancelled:
        time.sleep(LOOK_SECONDS)
    time.sleep(ctx.payload["seconds"])
    note("end", ctx)


@handler("chaos.emit")
def emit(ctx: Context) -> int:
    """Emit as many events as the payload's `count` says, then fail as often as its `fails` says."""
    note("start", ctx)
    for number in range(ctx.payload["count"]):
        ctx.emit(ctx.payload["topic"], {"n": number, "attempt": ctx.attempt})
    if ctx.attempt <= ctx.payload.get("fails", 0):
        raise RuntimeError(f"attempt {ctx.attempt} fails as planned")
    return ctx.payload["count"]


@handler("chaos.alone", run="process")
def alone(ctx: Context) -> None:
    """Be called in a process of its own, and say so."""
    note("start", ctx, returns=None)


@handler("chaos.child_gate", run="process")
def child_gate(ctx: Context) -> None:
    """Wait at the payload's gate in a process of its own."""
    note("start", ctx, returns=None)
    door = Path(ctx.payload["gate"])
    while not door.exists():
        time.sleep(LOOK_SECONDS)


@handler("chaos.kill_worker")
def kill_worker(ctx: Context) -> None:
    """Kill the process that it runs in: a worker at first, a child of its own once that was noticed."""
    note("start", ctx)
    os.kill(os.getpid(), signal.SIGKILL)


@handler("chaos.exit")
async def leave(ctx: Context) -> None:
    """End the process that it runs in without any cleanup, after the payload's `seconds`."""
    note("start", ctx)
    await asyncio.sleep(ctx.payload["seconds"])
    os._exit(7)


@handler("chaos.keep_lock")
def keep_lock(ctx: Context) -> None:
    """Keep the interpreter's lock in C for the payload's `seconds`, asleep or (`busy`) on a CPU."""
    note("start", ctx)
    if ctx.payload.get("busy"):
        re.match("(a+)+$", "a" * 64 + "b")  # takes years
    ctypes.PyDLL(None).usleep(int(ctx.payload["seconds"] * 1_000_000))
    note("end", ctx)
