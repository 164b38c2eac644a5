"""Runs one handler in a process of its own: `python -m noonmark.worker.child <result fd> <pid>`.

For runs that have cost two workers their lives already: a handler that kills its process then only
kills this one, and the runs beside it go on. The order comes on standard input, the answer leaves by a
pipe of its own, since a handler may print.
"""

from __future__ import annotations

import asyncio
import ctypes
import inspect
import os
import signal
import sys
from datetime import datetime
from pathlib import Path
from uuid import UUID

import orjson

from noonmark.handlers import Context, ResultError, encode_result, load_handlers
from noonmark.worker.outcomes import describe

_PR_SET_PDEATHSIG = 1


def main() -> int:
    """Read the order, run the handler, write the answer."""
    _end_with(int(sys.argv[2]))
    order = orjson.loads(sys.stdin.buffer.read())
    answer = _run(order)
    with os.fdopen(int(sys.argv[1]), "wb") as pipe:
        pipe.write(orjson.dumps(answer))
    return 0


def _end_with(parent: int) -> None:
    """Die when the worker does, even by SIGKILL: whoever retakes the run must not meet its old self."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        sys.exit(1)


def _run(order: dict[str, object]) -> dict[str, object]:
    context = order["context"]
    assert isinstance(context, dict)
    for name in ("run_id", "job_id"):
        context[name] = UUID(context[name])
    for name in ("scheduled_for", "deadline"):
        context[name] = datetime.fromisoformat(context[name])
    try:
        modules, path = order["modules"], order["path"]
        assert isinstance(modules, list)
        registry = load_handlers(modules, Path(str(path)) if path else None)
        handler = registry.get(str(order["handler"]))
        if handler is None:
            return {"error": f"no handler is registered as {order['handler']!r}", "retryable": False}
        value = handler.function(Context(**context))
        if inspect.isawaitable(value):
            value = asyncio.run(_await(value))
        result = encode_result(value)
    except ResultError as error:
        return {"error": str(error), "retryable": False}
    except BaseException as error:  # noqa: BLE001 - whatever it was, the parent must hear of it
        return {"error": describe(error), "retryable": True}
    return {"result": result.decode() if result is not None else None}


async def _await(value: object) -> object:
    return await value  # type: ignore[misc]


if __name__ == "__main__":
    sys.exit(main())
