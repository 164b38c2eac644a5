"""The bare design, measured on the servers of a stack: the burst of one-time jobs, and the open loops."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from multiprocessing import get_context
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Final, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from benchmarks.bare.database import SCHEMA, connect, load
from benchmarks.bare.pipeline import PARTITIONS, Pipeline, run_dispatcher, run_trigger, run_worker
from benchmarks.figures import BareDesign, OtherBurst, OtherWindow, Spread, mean_batch, total
from benchmarks.load import at_once, evenly, sleep_until
from benchmarks.meter import Meter
from benchmarks.open_loop import stamped_lateness
from benchmarks.plan import LATENESS_RATES, WARM_RUNS, WINDOWS, Scale
from benchmarks.stack import BenchmarkError, Say, Stack, wait_for, wait_for_empty_outbox
from noonmark.kafka.admin import ensure_topics
from noonmark.kafka.config import KafkaConfig
from noonmark.kafka.topics import TopicSpec

_DATABASE: Final = "bare"
_ROLES: Final[dict[str, Callable[[Pipeline], None]]] = {
    "trigger": run_trigger,
    "dispatcher": run_dispatcher,
    "worker": run_worker,
}
_READY_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 10.0
_READING_SECONDS: Final = 0.1
_DRAIN_SECONDS: Final = 60.0
_SLOWEST_RUNS_PER_S: Final = 500


class RunningBareDesign:
    """The three processes of the bare design, on a database and a topic of their own.

    Args:
        url: of an empty database.
        bootstrap: the broker.
        servers: process ids of the servers by kind, whose CPU counts.
        folder: for the file with the instants of handlers.
    """

    def __init__(self, url: str, bootstrap: str, servers: Mapping[str, int], folder: Path) -> None:
        self._servers = dict(servers)
        self._kafka = KafkaConfig(bootstrap)
        # A forked process would share librdkafka's threads and Postgres sessions with the benchmark.
        context = get_context("spawn")
        self._pipeline = Pipeline(
            url=url,
            bootstrap=bootstrap,
            topic=f"bare-{secrets.token_hex(4)}",
            stamps=folder / "bare-stamps",
            ready=context.Value("q", 0),
            recorded=context.Value("q", 0),
            stop=context.Event(),
        )
        self._processes: dict[str, SpawnProcess] = {
            name: context.Process(target=role, args=(self._pipeline,), name=f"bare-{name}", daemon=True)
            for name, role in _ROLES.items()
        }
        self._connection = connect(url, "benchmark")

    def __enter__(self) -> Self:
        try:
            self._connection.execute(SCHEMA.encode())
            ensure_topics(self._kafka, [TopicSpec(self._pipeline.topic, PARTITIONS, 1)])
            for process in self._processes.values():
                process.start()
            self._await_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, and delete the topic."""
        self._pipeline.stop.set()
        for process in self._processes.values():
            if process.pid is not None:
                process.join(_STOP_SECONDS)
                if process.is_alive():
                    process.kill()
                    process.join()
        self._connection.close()
        admin = AdminClient(self._kafka.client(client_id="benchmark"))
        # A topic that is left does no harm: the broker's data are deleted with it.
        with contextlib.suppress(KafkaException):
            for deleted in admin.delete_topics([self._pipeline.topic], operation_timeout=10).values():
                deleted.result(_STOP_SECONDS)

    def measure_burst(self, size: int) -> OtherBurst:
        """Load jobs that are due at one instant, and wait until the last outcome is recorded."""
        due = load(self._connection, at_once(size), handler="bench.noop")
        target = self._pipeline.recorded.value + size
        meter = self._meter()
        sleep_until(self._connection, due, early_seconds=_READING_SECONDS)
        before = meter.read()
        sleep_until(self._connection, due)
        began = time.monotonic()
        self._wait(lambda: self._pipeline.recorded.value, target, 60 + size / _SLOWEST_RUNS_PER_S)
        waited_seconds = time.monotonic() - began
        wait_for_empty_outbox(self._connection)
        spent = meter.spent(before)
        finished, seconds, starts, records = self._ledger(due)
        cpu, took = spent.cpu_us(size), seconds or waited_seconds
        return OtherBurst(
            runs=size,
            seconds=round(took, 3),
            runs_per_s=round(finished / took, 1),
            cpu_us_per_run=round(total(cpu), 2),
            cpu_us_by_process=cpu,
            wal_bytes_per_run=round(spent.wal / size, 1),
            other_cpu_percent=spent.other_percent(),
            lost=size - finished,
            checkpoint=spent.checkpoint,
            runs_per_start=mean_batch(finished, starts),
            runs_per_recorded_batch=mean_batch(finished, records),
        )

    def measure_open_loop(self, *, rate: float, seconds: float) -> OtherWindow:
        """Load jobs that are due at evenly spaced instants, and measure how late each starts."""
        offsets = evenly(rate, seconds)
        due = load(self._connection, offsets, handler="bench.stamp")
        target = self._pipeline.recorded.value + len(offsets)
        meter = self._meter()
        sleep_until(self._connection, due, early_seconds=_READING_SECONDS)
        before = meter.read()
        time.sleep(seconds + _READING_SECONDS)
        spent = meter.spent(before)
        self._wait(lambda: self._pipeline.recorded.value, target, _DRAIN_SECONDS)
        rows = self._connection.execute(
            "select extract(epoch from started_at - scheduled_for)::float8 from runs"
            " where scheduled_for between %s and %s and started_at is not null",
            [due, due + timedelta(seconds=seconds)],
        ).fetchall()
        return OtherWindow(
            rate=rate,
            seconds=seconds,
            runs=len(offsets),
            lateness_ms=Spread.of_seconds([row[0] for row in rows]),
            handler_lateness_ms=Spread.of_seconds(stamped_lateness(self._pipeline.stamps, due, seconds)),
            cpu_percent_all=spent.all_percent(),
            other_cpu_percent=spent.other_percent(),
            not_started=len(offsets) - len(rows),
        )

    def _await_ready(self) -> None:
        if not self._wait(lambda: self._pipeline.ready.value, len(_ROLES), _READY_SECONDS):
            raise BenchmarkError(f"the bare design was not ready after {_READY_SECONDS:.0f} s")

    def _meter(self) -> Meter:
        pids = {name: process.pid for name, process in self._processes.items() if process.pid is not None}
        return Meter(self._connection, self._pipeline.bootstrap, {**self._servers, **pids}, [])

    def _wait(self, count: Callable[[], float], target: float, timeout_seconds: float) -> bool:
        """Wait for a count.

        Raises:
            BenchmarkError: a process has ended.
        """

        def checked() -> float:
            if ended := [name for name, process in self._processes.items() if process.exitcode is not None]:
                raise BenchmarkError(
                    f"the bare design's {', '.join(ended)} ended; its traceback is on stderr"
                )
            return count()

        return wait_for(checked, target, timeout_seconds=timeout_seconds)

    def _ledger(self, due: datetime) -> tuple[int, float | None, int, int]:
        row = self._connection.execute(
            "select count(*) filter (where state = 'succeeded'),"
            " extract(epoch from max(finished_at) - %(due)s)::float8,"
            " count(distinct started_at), count(distinct finished_at)"
            " from runs where scheduled_for = %(due)s",
            {"due": due},
        ).fetchone()
        assert row is not None
        return row


def measure_bare(stack: Stack, scale: Scale, say: Say) -> BareDesign:
    """Measure the bare design in a database that is dropped afterwards; noonmark's services must not run.

    Args:
        stack: its servers.
        scale: of the burst and the windows.
        say: receives one line about each step.
    """
    measured = BareDesign()
    with _running(stack) as bare:
        measured.burst = _measure_burst(bare, scale, say)
        for rate, seconds in WINDOWS:
            if rate in LATENESS_RATES:
                say(f"bare design: {rate:,.0f} jobs due per second")
                window = bare.measure_open_loop(rate=rate, seconds=scale.window(seconds))
                measured.open_loops.append(window)
    return measured


def measure_bare_again(stack: Stack, scale: Scale, say: Say) -> OtherBurst:
    """Measure the burst on the bare design once more, when noonmark's services have stopped."""
    with _running(stack) as bare:
        return _measure_burst(bare, scale, say)


@contextlib.contextmanager
def _running(stack: Stack) -> Iterator[RunningBareDesign]:
    with (
        stack.other_database(_DATABASE) as url,
        RunningBareDesign(url, stack.bootstrap, stack.pids(), stack.folder) as bare,
    ):
        yield bare


def _measure_burst(bare: RunningBareDesign, scale: Scale, say: Say) -> OtherBurst:
    say("a burst to warm the bare design, not reported")
    bare.measure_burst(scale.scaled(WARM_RUNS))
    say(f"bare design: {scale.size:,} jobs due at one instant")
    return bare.measure_burst(scale.size)
