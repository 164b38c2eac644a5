"""What each stage of a window did, from the ledger and from the services' histograms."""

from datetime import timedelta
from types import SimpleNamespace
from typing import ClassVar

from benchmarks.stages import STAGES, read_timed, stages_of
from benchmarks.stored import growth_per_run, read_stored
from tests.unit.benchmarks.samples import DUE


class Ledger:
    """Four runs, due 10 ms apart: claimed by two statements, started by one each but the last two, recorded at once."""

    rows: ClassVar = {
        "queued_at": [(0.020, 20), (0.010, 20), (0.030, 50), (0.020, 50)],
        "started_at": [(0.010, 30), (0.020, 40), (0.020, 70), (0.020, 70)],
        "finished_at": [(0.060, 90), (0.050, 90), (0.020, 90), (0.020, 90)],
    }

    def execute(self, query, parameters):
        assert parameters == ["mine", DUE]
        [written] = [name for name in self.rows if f"{name} is not null" in query]
        rows = [(seconds, DUE + timedelta(milliseconds=at)) for seconds, at in self.rows[written]]
        return SimpleNamespace(fetchall=lambda: rows)


BEFORE = {"claim": (10.0, 1.0), "relay": (5.0, 2.0)}
AFTER = {"claim": (12.0, 1.008), "relay": (9.0, 2.1)}


def test_runs_of_one_statement_are_one_batch():
    stages = stages_of(Ledger(), "mine", DUE, BEFORE, AFTER)
    assert tuple(stages) == STAGES
    assert {stage: (one.batches, one.runs_per_batch) for stage, one in stages.items()} == {
        "claim": (2, 2.0),
        "relay": (4, 1.0),
        "start": (3, 1.33),
        "record": (1, 4.0),
    }


def test_batches_are_timed_by_the_services_and_their_distance_by_the_ledger():
    stages = stages_of(Ledger(), "mine", DUE, BEFORE, AFTER)
    assert (stages["claim"].batch_ms, stages["relay"].batch_ms) == (4.0, 25.0)
    assert stages["start"].batch_ms is None
    assert stages["claim"].gap_ms.max == 30.0
    assert (stages["start"].gap_ms.count, stages["start"].gap_ms.mean) == (2, 20.0)
    assert stages["record"].gap_ms is None
    assert stages["record"].wait_ms.max == 60.0


def test_a_window_without_batches_has_no_times():
    stages = stages_of(Ledger(), "mine", DUE, BEFORE, BEFORE)
    assert (stages["relay"].batches, stages["relay"].runs_per_batch, stages["relay"].batch_ms) == (
        0,
        None,
        None,
    )
    assert stages["claim"].batch_ms is None


def test_the_histograms_are_read_from_their_services():
    asked = []

    def counter(service, name):
        asked.append((service, name))
        return float(len(asked))

    assert read_timed(SimpleNamespace(counter=counter)) == {"claim": (1.0, 2.0), "relay": (3.0, 4.0)}
    assert asked == [
        ("trigger", "noonmark_claim_seconds_count"),
        ("trigger", "noonmark_claim_seconds_sum"),
        ("dispatcher", "noonmark_relay_seconds_count"),
        ("dispatcher", "noonmark_relay_seconds_sum"),
    ]


def test_what_is_stored_counts_only_the_logs_of_the_topics(tmp_path):
    for name, size in (
        ("noonmark.lifecycle-0/0.log", 300),
        ("noonmark.runs.default.normal-3/0.log", 200),
        ("noonmark.lifecycle-0/0.index", 10_000),
        ("benchmark-warm-up-0/0.log", 5000),
    ):
        file = tmp_path / "logs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(size))
    connection = SimpleNamespace(execute=lambda _: SimpleNamespace(fetchone=lambda: (7000, 900)))
    after = read_stored(connection, tmp_path, "noonmark")
    assert after == {"ledger": 7000, "jobs": 900, "kafka": 500}
    assert growth_per_run({"ledger": 2000, "jobs": 900, "kafka": 100}, after, 10) == {
        "ledger": 500.0,
        "jobs": 0.0,
        "kafka": 40.0,
    }
