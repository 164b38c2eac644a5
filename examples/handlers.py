"""Python handlers, as a team would write them: functions that take the context of one attempt.

    noonmark worker --handlers examples.handlers --path .

A job names a handler by its dotted path (`examples.handlers.send_welcome`) or by the name given to the
decorator (`reports.build`). What a handler returns is kept as the run's result; what it raises fails the
attempt, and the job's retry policy decides what follows.
"""

import asyncio

from noonmark.handlers import Context, handler


@handler
def send_welcome(ctx: Context) -> dict[str, str]:
    """Pretend to send a mail; the key keeps a mail service from sending it twice when a run is repeated."""
    ctx.logger.info("welcome_sent", user_id=ctx.payload["user_id"])
    return {"sent_to": f"user {ctx.payload['user_id']}", "key": ctx.idempotency_key}


@handler("reports.build")
async def build_report(ctx: Context) -> dict[str, int]:
    """Wait for several sources at once, as async handlers do."""
    pages = await asyncio.gather(*(_fetch(source) for source in ctx.payload["sources"]))
    return {"pages": sum(pages)}


async def _fetch(source: str) -> int:
    await asyncio.sleep(0.05)
    return len(source)


@handler("ticks.count")
def count_tick(ctx: Context) -> None:
    """Do next to nothing."""


@handler("sync.orders")
def sync_orders(ctx: Context) -> str:
    """Fail on the first attempts, as a service does that is just restarting."""
    if ctx.attempt <= ctx.payload["failures"]:
        raise ConnectionError(f"orders service answered 503 on attempt {ctx.attempt}")
    return f"synchronised on attempt {ctx.attempt}"


@handler("import.file")
def import_file(ctx: Context) -> None:
    """Fail whenever it is tried: its run ends among the dead letters."""
    raise ValueError(f"{ctx.payload['file']} is not a CSV file")
