"""Handlers of every mode that measure by their own clock how long they ran, however they end.

A worker loads them with `NOONMARK_HANDLERS=tests.support.chaos_handlers,tests.support.starved_handlers`.
"""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.chaos_handlers import note

from noonmark.handlers import Context, handler


@contextmanager
def measured(ctx: Context) -> Iterator[float]:
    """Write the start, and at the end the seconds since then; gives what the handler is to take."""
    begun = time.monotonic()
    note("start", ctx, returns=None)
    try:
        yield ctx.payload["seconds"]
    finally:
        note("end", ctx, ran=str(time.monotonic() - begun))


@handler("starved.thread")
def on_a_thread(ctx: Context) -> None:
    """Take the payload's `seconds` on a thread."""
    with measured(ctx) as seconds:
        time.sleep(seconds)


@handler("starved.loop")
async def on_the_loop(ctx: Context) -> None:
    """The same on an event loop."""
    with measured(ctx) as seconds:
        await asyncio.sleep(seconds)


@handler("starved.process", run="process")
def in_a_process(ctx: Context) -> None:
    """The same in a process."""
    with measured(ctx) as seconds:
        time.sleep(seconds)
