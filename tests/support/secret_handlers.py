"""Handlers that are careless with a secret in every way they can, for the test that looks for its traces."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from typing import Any

from noonmark.handlers import Context, handler


def _spread(ctx: Context) -> dict[str, Any]:
    """Tell a secret wherever a context can be told something."""
    value = ctx.secret("canary")
    coded = base64.b64encode(value.encode()).decode()
    basic = base64.b64encode(f"user:{value}".encode()).decode()
    ctx.log(f"token {value}", coded=coded, basic=basic)
    ctx.logger.info("careless", token_text=value, coded=coded)
    ctx.progress(0.5, f"with {value}")
    ctx.checkpoint({"token": value, "coded": coded})
    return {"token": value, "coded": coded, value: [basic, json.dumps(value)]}


@handler("secret.returns")
def returns(ctx: Context) -> dict[str, Any]:
    return _spread(ctx)


@handler("secret.raises")
def raises(ctx: Context) -> None:
    raise RuntimeError(f"refused with {_spread(ctx)}")


@handler("secret.raises_cut")
def raises_cut(ctx: Context) -> None:
    value = ctx.secret("canary")
    # The text of an error is cut after 2,000 characters: in the middle of the secret.
    raise RuntimeError("x" * (2000 - len("RuntimeError: ") - len(value) // 2) + value)


@handler("secret.async")
async def asynchronous(ctx: Context) -> None:
    await asyncio.sleep(0)
    raise ValueError(repr(_spread(ctx)))


@handler("secret.process", run="process")
def process(ctx: Context) -> None:
    told = _spread(ctx)
    print(told)
    print(told, file=sys.stderr, flush=True)
    raise KeyError(ctx.secret("canary"))


@handler("secret.process_returns", run="process")
def process_returns(ctx: Context) -> dict[str, Any]:
    print(ctx.secret("canary"))
    return _spread(ctx)


@handler("secret.missing")
def missing(ctx: Context) -> str:
    return ctx.secret("not-there")
