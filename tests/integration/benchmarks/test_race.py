"""A rival is measured by its program of three commands, on a real Postgres."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import psutil
import pytest
from benchmarks.race.measure import measure_rival_burst, measure_rival_open_loop
from benchmarks.race.rivals import RIVALS, Rival
from benchmarks.stack import BenchmarkError
from tests.integration.benchmarks.servers import SessionServers
from tests.support.stack import Kafka, Postgres

PROGRAM = Path(__file__).with_name("queue_program.py")
SIZE = 300


def queue(program: Path = PROGRAM, **changed) -> Rival:
    """The small queue as a rival."""
    fields = {
        "name": "queue",
        "command": lambda _folder: (sys.executable, str(program)),
        "workers": 2,
        "warm_seconds": 1.0,
        "finished": "select count(*) from queue where finished_at is not null",
        "last_finished": "select extract(epoch from max(finished_at))::float8 from queue",
    }
    return dataclasses.replace(RIVALS["pgqueuer"], **{**fields, **changed})


@pytest.fixture
def servers(postgres_server: Postgres, kafka_server: Kafka, tmp_path: Path) -> SessionServers:
    return SessionServers(postgres_server, kafka_server.bootstrap, tmp_path)


def test_a_burst_counts_from_the_due_instant_to_the_last_outcome(servers, tmp_path):
    burst = measure_rival_burst(servers, queue(), tmp_path, SIZE)

    assert (burst.runs, burst.lost) == (SIZE, 0)
    assert SIZE / burst.runs_per_s == pytest.approx(burst.seconds, abs=0.001)
    assert burst.wal_bytes_per_run > 0
    assert {"postgres", "worker-1", "worker-2"} <= set(burst.cpu_us_by_process)
    assert not running(PROGRAM)


def test_a_rival_that_deletes_its_jobs_is_measured_without_the_time_of_its_last_outcome(servers, tmp_path):
    left = "select %(size)s - count(*) filter (where finished_at is null) from queue"
    burst = measure_rival_burst(servers, queue(finished=left, last_finished=None), tmp_path, SIZE)

    assert burst.lost == 0
    assert burst.seconds > 0


def test_every_job_of_an_open_loop_has_the_lateness_of_its_handler(servers, tmp_path):
    window = measure_rival_open_loop(servers, queue(), tmp_path, rate=100, seconds=2)

    assert (window.runs, window.not_started) == (200, 0)
    assert window.handler_lateness_ms is not None
    assert window.handler_lateness_ms.count == 200
    assert window.handler_lateness_ms.p50 >= 0
    assert list(tmp_path.glob("rival-stamps*")) == []


def test_a_worker_that_ends_is_reported_with_the_end_of_its_log(servers, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text(
        PROGRAM.read_text().replace(
            "def work(connection):", "def work(connection):\n    raise OSError('no disk')"
        )
    )

    with pytest.raises(BenchmarkError, match=r"a worker of queue ended:(?s:.*)OSError: no disk"):
        measure_rival_burst(servers, queue(broken), tmp_path, SIZE)


def test_a_program_that_cannot_prepare_is_reported(servers, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit('no such command')")

    with pytest.raises(BenchmarkError, match=r"`prepare` exited with 1:\nno such command"):
        measure_rival_burst(servers, queue(broken), tmp_path, SIZE)


def running(program: Path) -> list[int]:
    """Process ids of a program."""
    return [p.pid for p in psutil.process_iter(["cmdline"]) if str(program) in (p.info["cmdline"] or [])]
