import io

from benchmarks.figures import Report
from benchmarks.tables import show
from benchmarks.targets import Target, targets
from rich.console import Console
from tests.unit.benchmarks import samples


def test_of_most_figures_less_is_better() -> None:
    verdicts = [Target("latency", measured, 100, 50).verdict for measured in (40, 50, 60, 100, 101)]
    assert verdicts == ["aim", "aim", "reached", "reached", "missed"]


def test_of_rates_more_is_better() -> None:
    verdicts = [Target("rate", measured, 100, 200, more=True).verdict for measured in (250, 150, 50)]
    assert verdicts == ["aim", "reached", "missed"]


def test_what_was_not_measured_is_not_compared() -> None:
    assert targets(Report(1, "2030-01-01T00:00:00+00:00")) == []


def test_a_lost_run_misses_its_target() -> None:
    report = samples.report()
    report.burst = samples.burst(lost=1)
    missed = [one.figure for one in targets(report) if one.verdict == "missed"]
    assert "lost runs, one-time" in missed


def test_a_report_with_every_part_missing_is_shown_all_the_same() -> None:
    out = io.StringIO()
    report = Report(1, "2030-01-01T00:00:00+00:00", failed={"burst": "[it] broke"})
    show(report, Console(file=out, width=120))
    assert "burst failed: [it] broke" in out.getvalue()


def test_a_whole_report_is_shown() -> None:
    out = io.StringIO()
    report = samples.report()
    report.machine = {}
    show(report, Console(file=out, width=120))
    assert "Against the targets" in out.getvalue()
