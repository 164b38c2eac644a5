"""Runs a service process: starts and supervises its loops, and stops all of them if one fails.

Exit codes: 0 stopped by a signal; 1 a loop failed or did not stop; 2 the service could not start; 130 stopped
by a second signal.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Final, NoReturn, Protocol

import psycopg
from structlog.typing import FilteringBoundLogger

from noonmark.core import faults
from noonmark.core.zones.zones import ZoneError
from noonmark.kafka.consumers.records import ConsumerFailed
from noonmark.service.backoff import Backoff, StoppedError, retry_transient
from noonmark.service.health import Health, HealthServer, HealthServerError
from noonmark.service.missing_rights import explain
from noonmark.service.run_traces import RunTraces
from noonmark.settings import Settings
from noonmark.telemetry.logs import configure_logs, get_logger
from noonmark.telemetry.metrics import metrics_of
from noonmark.telemetry.tracing import TracingError, open_tracer

__all__ = ["Backoff", "Loop", "Service", "StartError", "StoppedError", "retry_transient", "run_service"]

STOPPED: Final = 0
LOOP_FAILED: Final = 1
NOT_STARTED: Final = 2
INTERRUPTED: Final = 130

COLLECT_AFTER: Final = (50_000, 20, 100)
"""Thresholds of the garbage collector's generations."""

_CHECK_SECONDS: Final = 1.0
"""The longest wait of the main thread. Python runs a signal's handler there between two steps; a signal that
another thread gets, or that comes just before a wait begins, does not end that wait."""

_SIGNALLED: Final = b"s"

_HURRIED: Final = b"h"

_RUNNING: Final = "running"
"""The condition of /readyz that the service has started and is not stopping."""

HURRY_SECONDS: Final = 2.0
"""Time for the loops to stop after a second signal."""

FAILURE_GRACE_SECONDS: Final = 4.0
"""Time for the other loops to stop after a loop has failed; then the process exits."""


class StartError(RuntimeError):
    """The service cannot start; the operator sees the message without a traceback."""


class Loop(Protocol):
    """One activity of a service, in a separate thread."""

    name: str

    def run(self, stop: threading.Event) -> None:
        """Work until `stop` is set. Returning earlier, or raising, stops the whole process."""


@dataclass(frozen=True, slots=True)
class Service:
    """A service process; `build` creates its loops from it.

    Attributes:
        name: such as intake, trigger or worker; it selects the metrics.
        settings: as the command line read them.
        health: loops register their progress and conditions here.
        stop: set by the first signal.
        hurry: set by a second signal: everything that still runs must be stopped now.
        log: bound logger.
        traces: selects traced runs; None if tracing is off.
    """

    name: str
    settings: Settings
    health: Health
    stop: threading.Event
    log: FilteringBoundLogger
    hurry: threading.Event = field(default_factory=threading.Event)
    traces: RunTraces | None = None


def run_service(name: str, settings: Settings, build: Callable[[Service], Sequence[Loop]]) -> int:
    """Run a service in this process until a signal arrives or one of its loops fails.

    Must be called from the main thread. SIGTERM and SIGINT set the stop event. A second signal sets the hurry
    event and gives the loops two seconds. A third one ends the process at once. If loops do not stop in time,
    the process exits anyway.

    Args:
        name: name of the service in logs; it selects the metrics.
        settings: the settings.
        build: creates the loops; can connect, and can raise `StartError`.

    Returns:
        The exit code.
    """
    configure_logs(name, settings.log_level, settings.log_format)
    if not faulthandler.is_enabled():
        # A crash in a C library leaves no log line: this prints the stack of every thread to stderr. It does
        # not work for a crash in a thread that blocks all signals, such as those of librdkafka; then only
        # the exit status shows it.
        faulthandler.enable()
    log = get_logger()
    service = Service(name, settings, Health(), threading.Event(), log)
    server = None
    # Before anything else, because the parts register their own conditions only later.
    service.health.require(_RUNNING, "starting")
    try:
        _arm_fault()
        settings.apply_zone_data()
        service = replace(service, traces=_open_traces(name, settings))
        server = HealthServer(service.health, settings.metrics_host, settings.metrics_port, metrics_of(name))
        log.info("health_listening", host=settings.metrics_host, port=server.port)
        with _signals_wake(changed := threading.Event(), service), _uncaught_logged(log):
            loops = build(service)
            with _startup_objects_kept():
                return _Supervisor(service, loops, changed).run()
    except StoppedError:
        return STOPPED
    except (StartError, HealthServerError, ZoneError) as error:
        log.error("service_not_started", reason=str(error))  # noqa: TRY400 - expected; the sentence is enough
        return NOT_STARTED
    except psycopg.errors.InsufficientPrivilege as error:
        log.error("service_not_started", reason=explain(name, error))  # noqa: TRY400 - expected
        return NOT_STARTED
    except Exception:
        log.exception("service_not_started")
        return NOT_STARTED
    finally:
        if server is not None:
            server.close()
        if service.traces is not None:
            service.traces.tracer.close()


def _open_traces(name: str, settings: Settings) -> RunTraces | None:
    try:
        tracer = open_tracer(name, settings.otlp_endpoint)
    except TracingError as error:
        raise StartError(str(error)) from None
    return RunTraces(tracer, settings.trace_share) if tracer is not None else None


def _arm_fault() -> None:
    setting = os.environ.get("NOONMARK_FAULT")
    if not setting:
        return
    try:
        faults.arm(setting)
    except ValueError as error:
        raise StartError(str(error)) from error


@dataclass(slots=True)
class _Supervised:
    loop: Loop
    thread: threading.Thread | None = None
    failed: bool = False


@dataclass(slots=True)
class _Supervisor:
    service: Service
    loops: Iterable[Loop]
    changed: threading.Event
    supervised: list[_Supervised] = field(default_factory=list)

    def run(self) -> int:
        """Start every loop, wait for the first reason to stop, and wait until all loops have stopped."""
        log, stop = self.service.log, self.service.stop
        for loop in self.loops:
            entry = _Supervised(loop)
            # Daemon threads: one that hangs in C code must not keep a dead service alive.
            entry.thread = threading.Thread(target=self._run_loop, args=(entry,), name=loop.name, daemon=True)
            self.supervised.append(entry)
        for entry in self.supervised:
            assert entry.thread is not None
            entry.thread.start()
        self.service.health.set_ready(_RUNNING, ready=True)
        log.info("service_started", loops=[entry.loop.name for entry in self.supervised], pid=os.getpid())
        while not (stop.is_set() or self._ended()):
            self.changed.wait(_CHECK_SECONDS)
            self.changed.clear()
        log.info("service_stopping", signalled=stop.is_set())
        self.service.health.set_ready(_RUNNING, ready=False, missing="stopping")
        stop.set()
        self._await_loops()
        code = LOOP_FAILED if any(entry.failed for entry in self.supervised) else STOPPED
        if self.service.hurry.is_set():
            code = INTERRUPTED
        log.info("service_stopped", exit_code=code)
        return code

    def _run_loop(self, entry: _Supervised) -> None:
        name, failed = entry.loop.name, False
        try:
            entry.loop.run(self.service.stop)
            if not self.service.stop.is_set():
                failed = True
                self.service.log.error("loop_ended", loop=name)
        except StoppedError:
            # Raised by waits that the stop event ended: a normal stop.
            failed = not self.service.stop.is_set()
        except psycopg.errors.InsufficientPrivilege as error:
            failed = True
            reason = explain(self.service.name, error)
            self.service.log.error("loop_failed", loop=name, reason=reason)  # noqa: TRY400 - expected
        except ConsumerFailed as error:
            failed = True
            self.service.log.error("loop_failed", loop=name, reason=str(error))  # noqa: TRY400 - expected
        except BaseException:
            failed = True
            self.service.log.exception("loop_failed", loop=name)
        finally:
            if failed:
                # In this order, so that /livez shows the failure before the service stops for it.
                self.service.health.fail(name, "the loop has ended")
                entry.failed = True
            self.changed.set()

    def _ended(self) -> bool:
        return any(not self._alive(entry) for entry in self.supervised) or not self.supervised

    @staticmethod
    def _alive(entry: _Supervised) -> bool:
        return entry.thread is not None and entry.thread.is_alive() and not entry.failed

    def _await_loops(self) -> None:
        asked_at = time.monotonic()
        # The loops drain within `drain_seconds`; the rest is for what follows a drain.
        limit = asked_at + self.service.settings.drain_seconds + FAILURE_GRACE_SECONDS
        hurried_at = 0.0
        while running := [
            entry.loop.name
            for entry in self.supervised
            if entry.thread is not None and entry.thread.is_alive()
        ]:
            if any(entry.failed for entry in self.supervised):
                limit = min(limit, time.monotonic() + FAILURE_GRACE_SECONDS)
            if self.service.hurry.is_set():
                hurried_at = hurried_at or time.monotonic()
                limit = min(limit, hurried_at + HURRY_SECONDS)
            left = limit - time.monotonic()
            if left <= 0:
                code = INTERRUPTED if hurried_at else LOOP_FAILED
                self.service.log.error("loops_did_not_stop", loops=running, exit_code=code)
                _end_process(code)
            # Short waits: a thread sets the event shortly before it has ended.
            self.changed.wait(min(left, 0.05))
            self.changed.clear()


@contextmanager
def _signals_wake(changed: threading.Event, service: Service) -> Iterator[None]:
    """Let SIGTERM and SIGINT set the events; a third signal ends the process.

    The handler only writes to a pipe and a thread sets the events: a handler that runs in the main
    thread while that thread holds an Event's lock would wait for itself.
    """
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    received = 0

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received > 2:
            _end_process(INTERRUPTED)
        os.write(write_end, _SIGNALLED if received == 1 else _HURRIED)

    def watch() -> None:
        while said := os.read(read_end, 1):
            service.stop.set()
            if said == _HURRIED:
                service.hurry.set()
            changed.set()

    watcher = threading.Thread(target=watch, name="signals", daemon=True)
    watcher.start()
    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(write_end)
        watcher.join()
        os.close(read_end)


@contextmanager
def _startup_objects_kept() -> Iterator[None]:
    """Let the garbage collector pass over what exists already, and look at new objects less often.

    Batches create some thousand objects that are alive at every collection: with Python's thresholds, the
    collector takes up to a fifth of the time.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@contextmanager
def _uncaught_logged(log: FilteringBoundLogger) -> Iterator[None]:
    """Log what kills any other thread, instead of printing an unmasked traceback."""

    def hook(args: threading.ExceptHookArgs) -> None:
        name = args.thread.name if args.thread else "unknown"
        log.error("thread_failed", thread=name, exc_info=args.exc_value)

    before = threading.excepthook
    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = before


def _end_process(code: int) -> NoReturn:
    """Exit at once, without atexit handlers, which would wait for threads that hang."""
    os._exit(code)
