"""For tests of handlers, of schedules, and of applications that use noonmark.

    from noonmark.testing import run_handler

    def test_a_welcome_mail_is_sent_once(mailbox):
        result = run_handler(send_welcome, {"user_id": 42})
        assert result.state == "succeeded"

`run_handler` executes a handler like a worker, in memory. `simulate` plans a job in virtual time like a
trigger. The fixture `noonmark_stack` starts a complete installation; its plugin is part of the package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from noonmark.testing.clocks import VirtualClock
    from noonmark.testing.running import HandlerResult, Progress, run_handler, run_handler_async
    from noonmark.testing.simulation import Simulated, SimulatedInstant, simulate
    from noonmark.testing.stacks import Stack, StackUnavailableError, start_stack

_HOMES: Final = {
    "HandlerResult": "running",
    "Progress": "running",
    "Simulated": "simulation",
    "SimulatedInstant": "simulation",
    "Stack": "stacks",
    "StackUnavailableError": "stacks",
    "VirtualClock": "clocks",
    "run_handler": "running",
    "run_handler_async": "running",
    "simulate": "simulation",
    "start_stack": "stacks",
}

__all__ = [
    "HandlerResult",
    "Progress",
    "Simulated",
    "SimulatedInstant",
    "Stack",
    "StackUnavailableError",
    "VirtualClock",
    "run_handler",
    "run_handler_async",
    "simulate",
    "start_stack",
]


def __getattr__(name: str) -> Any:
    """Load a name on demand: pytest imports the plugin in every run, even if no test uses it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
