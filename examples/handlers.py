"""Example Python handlers: functions that take the context of one attempt.

    noonmark worker --handlers examples.handlers --path .

A job refers to a handler by its dotted path (`examples.handlers.send_welcome`) or by the name in the
decorator (`reports.build`). The return value is stored as the run's result. An exception fails the attempt,
and the job's retry policy decides whether there is another.
"""

import asyncio

from noonmark.handlers import Context, handler


@handler
def send_welcome(ctx: Context) -> dict[str, str]:
    """Simulate a mail. The key prevents a mail service from sending it twice if the run is repeated."""
    ctx.log("welcome sent", user_id=ctx.payload["user_id"])
    return {"sent_to": f"user {ctx.payload['user_id']}", "key": ctx.idempotency_key}


@handler("reports.build")
async def build_report(ctx: Context) -> dict[str, int]:
    """Wait for several sources concurrently."""
    pages = await asyncio.gather(*(_fetch(source) for source in ctx.payload["sources"]))
    return {"pages": sum(pages)}


async def _fetch(source: str) -> int:
    await asyncio.sleep(0.05)
    return len(source)


@handler("ticks.count")
def count_tick(ctx: Context) -> None:
    """Do nothing."""


@handler("sync.orders")
def sync_orders(ctx: Context) -> str:
    """Fail on the first attempts, like a service that restarts."""
    if ctx.attempt <= ctx.payload["failures"]:
        raise ConnectionError(f"orders service answered 503 on attempt {ctx.attempt}")
    return f"synchronised on attempt {ctx.attempt}"


@handler("sales.extract")
def extract_sales(ctx: Context) -> dict[str, int]:
    """Return counts that conditions of a workflow read."""
    return {"orders": ctx.payload["orders"], "refunds": ctx.payload["refunds"]}


@handler("import.file")
def import_file(ctx: Context) -> None:
    """Always fail: the run becomes a dead letter."""
    raise ValueError(f"{ctx.payload['file']} is not a CSV file")
