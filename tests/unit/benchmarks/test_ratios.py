"""Noonmark in relation to the bare design of the same minutes."""

import dataclasses
import io
import json
import time

import pytest
from benchmarks.burst import run_messages
from benchmarks.figures import Pairs, mean_batch
from benchmarks.handlers import STAMP
from benchmarks.open_loop import stamped_lateness
from benchmarks.plan import LATENESS_RATES, WINDOWS, plan_of
from benchmarks.ratios import ratios, ratios_as_json
from benchmarks.run import _Clock, _sound
from benchmarks.tables import show
from rich.console import Console
from tests.unit.benchmarks import samples

from noonmark.core.states import Lane
from noonmark.kafka.topics import Topics

RECURRING = {"recurring_cpu", "recurring_wal"}


def test_each_figure_is_divided_by_that_of_the_bare_design():
    report = samples.report()
    report.burst = samples.burst(cpu_us_per_run=120.0, runs_per_s=9000.0)
    report.open_loops = [samples.open_loop(1000, 0.060), samples.open_loop(5000, 0.030)]
    report.bare = samples.bare(
        samples.other_burst(cpu_us_per_run=100.0, runs_per_s=10_000.0),
        samples.other_window(1000, 0.030),
        samples.other_window(5000, 0.040),
    )
    found = {name: (one.measured, one.verdict) for name, one in ratios(report).items()}
    assert {name: found[name] for name in found if name not in RECURRING} == {
        "cpu_over_bare": (1.2, "reached"),
        "runs_per_s_over_bare": (0.9, "reached"),
        "p99_over_bare_1000": (2.0, "missed"),
        "p99_over_bare_5000": (0.75, "aim"),
    }


def test_bursts_before_and_after_count_alike():
    report = samples.report()
    report.burst = samples.burst(cpu_us_per_run=120.0, runs_per_s=12_000.0)
    report.bare = samples.bare(samples.other_burst(cpu_us_per_run=80.0, runs_per_s=20_000.0))
    report.bare.burst_after = samples.other_burst(cpu_us_per_run=70.0, runs_per_s=28_000.0)

    assert (ratios(report)["cpu_over_bare"].measured, ratios(report)["runs_per_s_over_bare"].measured) == (
        1.6,
        0.5,
    )


@pytest.mark.parametrize(
    ("two", "measured", "verdict"),
    [(11_550.0, 1.1, "aim"), (10_500.0, 1.0, "reached"), (9_975.0, 0.95, "missed")],
)
def test_two_of_each_are_compared_with_one_of_each_before_and_after(two, measured, verdict):
    report = samples.report()
    report.pairs = Pairs(*(samples.burst(runs_per_s=rate) for rate in (10_000.0, two, 11_000.0)))
    rate = ratios(report)["pairs_runs_per_s"]
    assert (rate.measured, rate.verdict) == (measured, verdict)


@pytest.mark.parametrize("lost", range(3))
def test_a_report_whose_pairs_lost_a_run_is_not_sound(lost):
    report = samples.report()
    bursts = [samples.burst() for _ in range(3)]
    report.pairs = Pairs(*bursts)
    assert _sound(report)

    bursts[lost] = samples.burst(lost=1)
    report.pairs = Pairs(*bursts)
    assert not _sound(report)


def test_recurring_runs_are_compared_with_one_time_runs_also_without_the_bare_design():
    report = samples.report()
    report.burst = samples.burst(cpu_us_per_run=100.0, wal_bytes_per_run=1000.0)
    report.recurring = samples.burst(kind="recurring", cpu_us_per_run=125.0, wal_bytes_per_run=1700.0)
    found = {name: (one.measured, one.verdict) for name, one in ratios(report).items()}
    assert found == {"recurring_cpu": (1.25, "aim"), "recurring_wal": (1.7, "missed")}


def test_a_window_that_only_one_of_the_two_has_is_not_compared():
    report = samples.report()
    report.open_loops = [samples.open_loop(1000)]
    report.bare = samples.bare(None, samples.other_window(5000, 0.040))
    assert set(ratios(report)) == RECURRING


def test_the_json_has_each_ratio_with_its_floor_and_its_aim():
    report = samples.report()
    report.bare = samples.bare(samples.other_burst(), samples.other_window(1000, 0.02))
    shown = json.loads(json.dumps(ratios_as_json(report)))
    floors = {name: (one["at_least"], one["aim"]) for name, one in shown.items()}
    assert floors == {
        "cpu_over_bare": (1.3, 0.9),
        "runs_per_s_over_bare": (0.75, 1.0),
        "p99_over_bare_1000": (1.5, 1.0),
        "recurring_cpu": (1.5, 1.25),
        "recurring_wal": (1.6, 1.3),
    }
    assert json.loads(json.dumps(report.as_json()))["bare"]["burst"]["runs_per_s"] == 100.0


def test_the_report_shows_the_bare_design_and_the_ratios():
    out = io.StringIO()
    report = samples.report()
    report.machine = {}
    report.bare = samples.bare(samples.other_burst(), samples.other_window(1000, 0.02))
    show(report, Console(file=out, width=120))
    assert "The bare design on the same servers" in out.getvalue()
    assert "start lateness p99 at 1,000/s, over the bare design" in out.getvalue()


def test_the_rates_at_which_lateness_is_compared_are_measured():
    assert set(LATENESS_RATES) <= {rate for rate, _ in WINDOWS}


@pytest.mark.parametrize(("arguments", "asked"), [([], False), (["--bare"], True)])
def test_the_bare_design_is_measured_on_request(arguments, asked):
    assert plan_of(arguments).bare is asked


def test_a_mean_batch_needs_at_least_one_statement():
    assert (mean_batch(1000, 3), mean_batch(1000, 0)) == (333.33, None)


def test_messages_of_runs_are_those_on_the_topics_of_the_lanes():
    topics = Topics()
    records = {
        topics.runs("default", Lane.HIGH): 2,
        topics.runs("default", Lane.LOW): 3,
        topics.lifecycle: 50,
    }
    assert run_messages(topics, records) == 5


def test_lateness_is_that_of_the_window_only_and_whole_entries_only(tmp_path):
    due = samples.DUE
    planned = due.timestamp()
    stamps = tmp_path / "stamps"
    entries = [(planned - 5, 0.5), (planned, 0.25), (planned + 10, 0.125), (planned + 11, 0.5)]
    written = b"".join(STAMP.pack(at, at + late) for at, late in entries)
    stamps.write_bytes(written + b"half")
    assert stamped_lateness(stamps, due, 10) == [0.25, 0.125]
    assert stamped_lateness(tmp_path / "absent", due, 10) == []


@pytest.mark.parametrize(
    ("burst", "window", "sound"),
    [
        (samples.other_burst(), samples.other_window(1000), True),
        (samples.other_burst(lost=1), samples.other_window(1000), False),
        (samples.other_burst(), dataclasses.replace(samples.other_window(1000), not_started=1), False),
    ],
    ids=["all run", "one lost", "one not started"],
)
def test_a_bare_design_that_loses_a_run_makes_the_benchmark_fail(burst, window, sound):
    report = samples.report()
    report.bare = samples.bare(burst, window)
    assert _sound(report) is sound


def test_the_time_of_the_bare_design_leaves_out_no_other_part():
    clock = _Clock(time.monotonic() - 1000)
    assert clock.is_over
    clock.allow_more()
    assert not clock.is_over
