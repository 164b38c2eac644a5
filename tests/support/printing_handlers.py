"""Handlers that print until a test lets them end: a file of the run's name in the payload's folder."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from noonmark.handlers import Context, handler

_BETWEEN_SECONDS = 0.2

print("imported")


def may_end(ctx: Context) -> bool:
    return Path(ctx.payload["folder"], f"end-{ctx.attempt}").exists()


@handler("printing.sync")
def sync(ctx: Context) -> None:
    """Print a line at a time on both streams, and log, until the test lets it end."""
    number = 0
    while not may_end(ctx):
        number += 1
        print("line", number)
        print("warning", number, file=sys.stderr)
        ctx.log("logged", number=number)
        time.sleep(_BETWEEN_SECONDS)
    print("the end", end="")


@handler("printing.async")
async def asynchronous(ctx: Context) -> None:
    """The same on the event loop."""
    number = 0
    while not may_end(ctx):
        number += 1
        print("line", number)
        await asyncio.sleep(_BETWEEN_SECONDS)
    await asyncio.to_thread(print, "the end", end="")


@handler("printing.process", run="process")
def process(ctx: Context) -> None:
    """The same in a process of its own."""
    sync(ctx)


@handler("printing.retried")
def retried(ctx: Context) -> None:
    """Fail at the first attempt."""
    sync(ctx)
    if ctx.attempt == 1:
        raise ConnectionError
