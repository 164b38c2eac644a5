"""Handlers of every mode that take a while, each with its lines in the target's log.

A worker loads them with `NOONMARK_HANDLERS=tests.support.chaos_handlers,tests.support.mode_handlers`.
"""

import time

from tests.support.chaos_handlers import note

from noonmark.handlers import Context, handler


@handler("modes.thread")
def on_a_thread(ctx: Context) -> None:
    """Take the payload's `seconds` on a thread."""
    note("start", ctx)
    time.sleep(ctx.payload["seconds"])
    note("end", ctx)


@handler("modes.process", run="process")
def in_a_process(ctx: Context) -> None:
    """The same in a process."""
    note("start", ctx)
    time.sleep(ctx.payload["seconds"])
    note("end", ctx)
