"""Python handlers of the chaos and acceptance tests: each call leaves a line in the target's log.

A worker loads them with `NOONMARK_HANDLERS=tests.support.chaos_handlers`. The log is the file that
`NOONMARK_TEST_TARGET_LOG` names; a line is one write in append mode, so that many processes share it
and a kill never leaves half of one that counts.
"""

import asyncio
import json
import os
import time
from pathlib import Path

from noonmark.handlers import Context, handler

LOG = os.open(os.environ["NOONMARK_TEST_TARGET_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
LOOK_SECONDS = 0.02


def note(kind: str, ctx: Context) -> None:
    """Append one line: what happened, to which attempt, and when by this host's clock."""
    line = {
        "event": kind,
        "run": str(ctx.run_id),
        "fence": ctx.fence,
        "attempt": ctx.attempt,
        "key": ctx.idempotency_key,
        "scheduled_for": ctx.scheduled_for.isoformat(),
        "namespace": ctx.namespace,
        "at": time.time(),
        "pid": os.getpid(),
        "via": "python",
    }
    os.write(LOG, json.dumps(line).encode() + b"\n")


@handler("chaos.record")
def record(ctx: Context) -> None:
    """Be called, and say so."""
    note("start", ctx)


@handler("chaos.flaky")
def flaky(ctx: Context) -> str:
    """Fail as often as the payload's `fails` says, then succeed."""
    note("start", ctx)
    if ctx.attempt <= ctx.payload["fails"]:
        raise RuntimeError(f"attempt {ctx.attempt} fails as planned")
    return f"attempt {ctx.attempt}"


@handler("chaos.slow")
async def slow(ctx: Context) -> None:
    """Take the payload's `seconds` on the event loop."""
    note("start", ctx)
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
