"""What users import to write jobs in Python.

    from noonmark.handlers import Context, handler

    @handler
    def send_welcome(ctx: Context) -> None:
        mail(ctx.payload["user_id"], key=ctx.idempotency_key)

A handler is found by its name among those registered by the modules that the operator lists; a
message never causes an import.
"""

from noonmark.handlers.context import Context
from noonmark.handlers.loading import HandlerLoadError, load_handlers
from noonmark.handlers.registry import REGISTRY, Handler, HandlerError, Registry, handler
from noonmark.handlers.results import MAX_RESULT_BYTES, ResultError, encode_result

__all__ = [
    "MAX_RESULT_BYTES",
    "REGISTRY",
    "Context",
    "Handler",
    "HandlerError",
    "HandlerLoadError",
    "Registry",
    "ResultError",
    "encode_result",
    "handler",
    "load_handlers",
]
