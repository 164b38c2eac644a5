"""Figures for tests, as a run of the benchmark would give them."""

from datetime import UTC, datetime

from benchmarks.figures import (
    BareDesign,
    Burst,
    Claim,
    OpenLoop,
    OtherBurst,
    OtherWindow,
    Report,
    Spread,
    Submissions,
)

DUE = datetime(2030, 1, 1, tzinfo=UTC)
SPREAD = Spread.of_seconds([0.010, 0.020, 0.030])


def burst(**changed) -> Burst:
    fields = {
        "kind": "one-time",
        "runs": 100,
        "seconds": 1.0,
        "seen_seconds": 1.1,
        "runs_per_s": 100.0,
        "cpu_us_per_run": 100.0,
        "cpu_us_by_process": {"worker": 40.0, "postgres": 60.0},
        "cpu_us_by_backend": {"noonmark-claim": 30.0},
        "other_cpu_percent": 0.0,
        "wal_bytes_per_run": 1500.0,
        "wal_bytes_per_run_with_load": 2100.0,
        "messages_per_run": 1.0,
        "messages": {"noonmark.lifecycle": 2},
        "copy_jobs_per_s": 1000.0,
        "share_of_copy_jobs": 0.1,
        "start_ms": SPREAD,
        "rss_mb": {"worker": 80.0},
        "lost": 0,
        "second_verdicts": 0,
        "without_event": 0,
        "repeated": 0,
        "checkpoint": False,
    }
    return Burst(**{**fields, **changed})


def open_loop(rate: float, p99_seconds: float = 0.02) -> OpenLoop:
    return OpenLoop(
        rate=rate,
        seconds=10.0,
        runs=1000,
        lateness_ms=Spread.of_seconds([p99_seconds]),
        handler_lateness_ms=None,
        cpu_percent={"worker": 10.0},
        cpu_percent_by_backend={},
        cpu_percent_noonmark=10.0,
        cpu_percent_all=30.0,
        other_cpu_percent=0.0,
        wal_bytes_per_run=1200.0,
        not_started=0,
    )


def other_burst(**changed) -> OtherBurst:
    fields = {
        "runs": 100,
        "seconds": 1.0,
        "runs_per_s": 100.0,
        "cpu_us_per_run": 80.0,
        "cpu_us_by_process": {"worker": 30.0, "postgres": 50.0},
        "wal_bytes_per_run": 1100.0,
        "other_cpu_percent": 0.0,
        "lost": 0,
        "checkpoint": False,
    }
    return OtherBurst(**{**fields, **changed})


def other_window(rate: float, p99_seconds: float = 0.02) -> OtherWindow:
    late = Spread.of_seconds([p99_seconds])
    return OtherWindow(rate, 10.0, 1000, late, late, 30.0, 0.0, 0)


def bare(burst: OtherBurst | None, *windows: OtherWindow) -> BareDesign:
    return BareDesign(burst, open_loops=list(windows))


def submissions(**changed) -> Submissions:
    fields = {
        "kind": "once",
        "submissions": 1000,
        "per_s": 9000.0,
        "seconds": 0.1,
        "cpu_us_per_submission": 50.0,
        "cpu_us_by_process": {"intake": 30.0},
        "other_cpu_percent": 0.0,
        "wal_bytes_per_submission": 900.0,
        "missing": 0,
        "rejected": 0,
    }
    return Submissions(**{**fields, **changed})


def claim(waiting: int, batch_ms: float, us: float) -> Claim:
    return Claim(waiting, 500, 20, 3, batch_ms, us, us / 2, 1.0)


def report() -> Report:
    return Report(
        size=100,
        started_at="2030-01-01T00:00:00+00:00",
        burst=burst(),
        recurring=burst(kind="recurring"),
        open_loops=[open_loop(100), open_loop(1000), open_loop(5000)],
        submissions={"once": submissions()},
        yardsticks={"copy_rows_per_s": 1.0},
        machine={"cores": 2},
    )
