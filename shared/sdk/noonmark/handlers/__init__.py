"""What users import to write jobs in Python.

    from noonmark.handlers import Context, handler

    @handler
    def send_welcome(ctx: Context) -> None:
        mail(ctx.payload["user_id"], key=ctx.idempotency_key)

The worker finds a handler by its name among those that the modules of the operator register. A message never
causes an import.
"""

from noonmark.core.kinds.emitted_event import EmitRefusedError
from noonmark.handlers.context import Context
from noonmark.handlers.effects import Detached, Effects, Fenced, Saved
from noonmark.handlers.exceptions import Cancel, Discard, Retry, Snooze
from noonmark.handlers.loading import HandlerLoadError, load_handlers
from noonmark.handlers.registry import REGISTRY, Handler, HandlerError, Registry, handler
from noonmark.handlers.results import MAX_RESULT_BYTES, ResultError, encode_result

__all__ = [
    "MAX_RESULT_BYTES",
    "REGISTRY",
    "Cancel",
    "Context",
    "Detached",
    "Discard",
    "Effects",
    "EmitRefusedError",
    "Fenced",
    "Handler",
    "HandlerError",
    "HandlerLoadError",
    "Registry",
    "ResultError",
    "Retry",
    "Saved",
    "Snooze",
    "encode_result",
    "handler",
    "load_handlers",
]
