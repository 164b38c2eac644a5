"""What handlers print in the worker's own process, for their attempts and for the worker's log."""

from __future__ import annotations

from typing import Any, Final

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.core.bounded_tail import TAIL_BYTES
from noonmark.telemetry.logs import get_logger
from noonmark.telemetry.routed_output import StreamName

_LINE_BYTES: Final = 4096
"""A line of this length is written to the worker's log before it ends."""

_log = get_logger()


def store_printed(attempt: RunningAttempt, stream: StreamName, data: bytes) -> bool:
    """Add what a handler printed to its attempt; return False if the attempt is over."""
    log = attempt.ensure_extras().logged()
    if log.closed:
        return False
    (log.stdout if stream == "stdout" else log.stderr).add(data)
    lines, end, rest = (log.unfinished_lines.pop(stream, b"") + data).rpartition(b"\n")
    if len(rest) >= _LINE_BYTES:
        lines, rest = lines + end + rest, b""
    if rest:
        log.unfinished_lines[stream] = rest
    if lines or end:
        _write_lines(attempt, stream, lines)
    return True


def finish_lines(attempt: RunningAttempt) -> None:
    """Write the last lines that a handler printed to the worker's log, although they have no end."""
    log = attempt.extras.log if attempt.extras is not None else None
    if log is not None and log.unfinished_lines:
        for stream, line in log.take_unfinished_lines():
            _write_lines(attempt, stream, line)


def ids_of(attempt: RunningAttempt) -> dict[str, Any]:
    """Return the fields of a line in the worker's log that is about an attempt; they bound such lines."""
    return {
        "run_id": str(attempt.run.id),
        "job_id": str(attempt.run.job_id),
        "namespace": attempt.run.namespace,
        "attempt": attempt.run.attempt,
        "fence": attempt.fence,
    }


def _write_lines(attempt: RunningAttempt, stream: str, lines: bytes) -> None:
    # No more of it is stored, and the worker's log must not contain more either.
    text = lines[-TAIL_BYTES:].decode("utf-8", "replace")
    if attempt.redactor is not None:
        text = attempt.redactor.clean(text, cut=len(lines) > TAIL_BYTES)
    _log.info("handler_printed", message=text, stream=stream, **ids_of(attempt))
