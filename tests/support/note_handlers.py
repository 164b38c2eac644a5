"""Handlers that keep checkpoints and then meet an end that they do not see coming."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

from noonmark.handlers import Context, handler


@handler("notes.dies")
def dies(ctx: Context) -> Any:
    """Take the worker down once a checkpoint is safe; the next attempt returns what it finds."""
    if ctx.last_checkpoint is None:
        ctx.checkpoint({"by": ctx.fence}).wait(20)
        os.kill(os.getpid(), signal.SIGKILL)
    return ctx.last_checkpoint


@handler("notes.fails")
def fails(ctx: Context) -> Any:
    """Fail right after a checkpoint that nobody waits for."""
    found = ctx.last_checkpoint or []
    ctx.log("attempt", number=ctx.attempt, found=found)
    ctx.progress(ctx.attempt / 3)
    ctx.checkpoint([*found, ctx.attempt])
    if ctx.attempt < 3:
        raise ConnectionError
    return found


@handler("notes.async")
async def asynchronous(ctx: Context) -> Any:
    """The same on the event loop, waiting for each checkpoint."""
    found = ctx.last_checkpoint or []
    await ctx.checkpoint([*found, ctx.attempt])
    if ctx.attempt < 3:
        raise ConnectionError
    return found


@handler("notes.process", run="process")
def process(ctx: Context) -> Any:
    """The same in a process of its own."""
    found = ctx.last_checkpoint or []
    ctx.log("attempt", number=ctx.attempt)
    ctx.progress(0.5, "in a process")
    ctx.checkpoint([*found, ctx.attempt]).wait(20)
    if ctx.attempt < 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return found


@handler("notes.drained")
async def drained(ctx: Context) -> Any:
    """Outlast the worker; the next one goes on."""
    if ctx.last_checkpoint is not None:
        return ctx.last_checkpoint
    ctx.progress(0.1, "begun")
    ctx.checkpoint("before the drain")
    await asyncio.sleep(600)
    return None
