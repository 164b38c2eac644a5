"""What applications import to talk to noonmark.

    from noonmark.client import Client

    with Client("https://noonmark.example.com") as noonmark:
        job = noonmark.jobs.create({"type": "http", "run_at": "2031-01-01T09:00:00Z", "payload": {...}})

`AsyncClient` has the same methods, to be awaited; `Publisher` publishes submissions to Kafka; `Workflow`
builds the document of a workflow. Each is loaded when you first import it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from noonmark.client.answers import Answer, Page
    from noonmark.client.clients import AsyncClient, Client
    from noonmark.client.errors import ApiError, ClientError, NoAnswerError, WaitTimeoutError
    from noonmark.client.publisher import Published, Publisher, PublishError
    from noonmark.client.streams import ServerEvent
    from noonmark.client.workflows import Dependency, TaskHandle, Workflow

_HOMES: Final = {
    "Answer": "answers",
    "ApiError": "errors",
    "AsyncClient": "clients",
    "Client": "clients",
    "ClientError": "errors",
    "Dependency": "workflows",
    "NoAnswerError": "errors",
    "Page": "answers",
    "PublishError": "publisher",
    "Published": "publisher",
    "Publisher": "publisher",
    "ServerEvent": "streams",
    "TaskHandle": "workflows",
    "WaitTimeoutError": "errors",
    "Workflow": "workflows",
}

__all__ = [
    "Answer",
    "ApiError",
    "AsyncClient",
    "Client",
    "ClientError",
    "Dependency",
    "NoAnswerError",
    "Page",
    "PublishError",
    "Published",
    "Publisher",
    "ServerEvent",
    "TaskHandle",
    "WaitTimeoutError",
    "Workflow",
]


def __getattr__(name: str) -> Any:
    """Load a name on first use: an application that only publishes needs no HTTP library, and the reverse."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
