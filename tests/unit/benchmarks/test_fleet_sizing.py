"""How large an installation is: it fits its load, grows with it, and says what it does not know."""

import json
from dataclasses import replace

import pytest
from benchmarks.fleet.__main__ import KEPT, main, simulated
from benchmarks.fleet.arrivals import scenarios
from benchmarks.fleet.check import TOLERANCE, Compared
from benchmarks.fleet.machine import ModelError
from benchmarks.fleet.measured import read_measured
from benchmarks.fleet.model import model_of
from benchmarks.fleet.path import PARTS
from benchmarks.fleet.sizing import CORES, LOG, Assumptions, size

MEASURED = read_measured(KEPT)
MODEL = model_of(MEASURED)
USUAL = Assumptions()


def sized(name, factor=1.0, **given):
    load = scenarios()[name]
    more = replace(
        load,
        runs=factor * load.runs,
        sustained=factor * load.sustained,
        runs_per_day=factor * load.runs_per_day,
    )
    return size(MODEL, MEASURED, more, replace(USUAL, **given))


def test_the_model_reproduces_the_cpu_that_it_was_fitted_to():
    for window in (MEASURED.burst, MEASURED.loops[5000], MEASURED.loops[1000]):
        fitted = sum(MODEL.costs["one-time"][part].of(1.0, window.batches[part]) for part in PARTS)
        fitted += MODEL.background_us("one-time", window.rate)
        assert fitted == pytest.approx(window.total_us, rel=0.15)


def test_recurring_runs_cost_what_their_burst_did():
    window = MEASURED.recurring
    fitted = sum(MODEL.costs["recurring"][part].of(1.0, window.batches[part]) for part in PARTS)
    fitted += MODEL.background_us("recurring", window.rate)
    assert fitted == pytest.approx(window.total_us, rel=0.05)
    claims = window.batches["claim"]
    assert MODEL.wal["recurring"].of(1.0, claims) == pytest.approx(window.wal_bytes, rel=0.01)


@pytest.mark.parametrize("kind", ["one-time", "recurring"])
@pytest.mark.parametrize("name", ["peak", "day", "midnight"])
def test_every_part_has_room_for_the_load_and_every_minute_is_within_its_objective(name, kind):
    fleet = sized(name, kind=kind)
    assert fleet.limits == sorted(fleet.limits, key=lambda one: one.rate)
    assert fleet.limits[0].rate >= fleet.target * 0.999
    assert fleet.scenario.sustained <= USUAL.utilisation * fleet.limits[0].rate
    assert max(one.p99 for one in fleet.minutes) + fleet.cluster.base[1] <= fleet.scenario.objective
    assert fleet.minutes[-1].backlog == 0
    assert sum(one.started for one in fleet.minutes) == pytest.approx(fleet.scenario.runs)


@pytest.mark.parametrize("name", ["peak", "day", "midnight"])
def test_a_larger_load_never_needs_less(name):
    less, more = sized(name, 0.5), sized(name, 4.0)
    for figure in (
        lambda fleet: fleet.clusters * fleet.cluster.triggers,
        lambda fleet: fleet.clusters * fleet.cluster.workers,
        lambda fleet: sum(one.all_cores for one in fleet.hosts),
    ):
        assert figure(less) <= figure(more)
    assert less.cost_per_month < more.cost_per_month
    assert less.stored.ledger_gb_per_day == pytest.approx(more.stored.ledger_gb_per_day / 8)


def test_what_one_postgres_cannot_do_is_divided_over_several():
    assert sized("peak").clusters == 1
    small = sized("peak", primary_cores=2)
    assert small.clusters > 1
    assert small.cluster.postgres_cores == 2
    slow = sized("peak", primary_wal_mb=10.0)
    assert slow.clusters > 1
    assert {CORES, LOG} <= {one.resource for one in slow.limits}


def test_prices_add_up():
    fleet = sized("peak", price_core_hour=1.0, price_gb_month=0.0)
    assert fleet.cost_per_month == pytest.approx(730 * sum(one.all_cores for one in fleet.hosts))
    stored = sized("peak", price_core_hour=0.0, price_gb_month=2.0)
    assert stored.cost_per_month == pytest.approx(2 * stored.stored.kept_gb)
    assert sized("peak", retention_days=60.0).stored.kept_gb > 1.5 * fleet.stored.kept_gb


def test_a_lane_has_a_partition_for_each_worker_and_a_trigger_has_two_shards():
    cluster = sized("midnight", primary_cores=192, primary_wal_mb=1e4).cluster
    assert cluster.partitions >= cluster.workers > 6
    assert cluster.shards == 2 * cluster.triggers


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "weekly"},
        {"utilisation": 0.0},
        {"utilisation": 1.5},
        {"primary_cores": 1},
        {"primary_wal_mb": 0.0},
        {"price_core_hour": -1.0},
    ],
)
def test_assumptions_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ModelError):
        Assumptions(**wrong)


def test_a_load_beyond_any_number_of_clusters_is_refused():
    with pytest.raises(ModelError, match="not enough"):
        sized("midnight", primary_wal_mb=0.01)


def test_the_command_prints_each_scenario_and_what_saturates_first(capsys):
    assert main([]) == 0
    text = capsys.readouterr().out
    for scenario in scenarios().values():
        assert f"### {scenario.title}" in text
    assert text.count("First to saturate: **") == 3


def test_the_command_prints_json(capsys):
    assert main(["--scenario", "midnight", "--json", "--primary-cores", "64", "--price-gb-month", "0"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["assumptions"]["primary_cores"] == 64
    assert list(shown["scenarios"]) == ["midnight"]
    [fleet] = simulated(MEASURED, "midnight", replace(USUAL, primary_cores=64, price_gb_month=0.0))
    assert shown["scenarios"]["midnight"]["cost_per_month"] == pytest.approx(fleet.cost_per_month)


def changed(tmp_path, change):
    report = json.loads(KEPT.read_text(encoding="utf-8"))
    change(report)
    file = tmp_path / "report.json"
    file.write_text(json.dumps(report), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda report: report["burst"].pop("stages"), "older benchmark"),
        (
            lambda report: [report[of].pop("commit_p99_ms") for of in ("yardsticks", "yardsticks_after")],
            "older",
        ),
        (lambda report: report.update(burst=None), "lacks burst"),
        (lambda report: report.update(open_loops=report["open_loops"][:1]), "open loop at 5,000/s"),
        (lambda report: report.pop("open_loops"), "not a report"),
    ],
)
def test_a_report_that_is_older_or_lacks_a_part_is_refused_with_what_to_do(tmp_path, capsys, change, says):
    assert main([changed(tmp_path, change)]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert "Traceback" not in error


def test_a_file_that_is_missing_or_no_json_is_refused(tmp_path, capsys):
    assert main([str(tmp_path / "missing.json")]) == 2
    assert "make bench JSON=" in capsys.readouterr().err
    other = tmp_path / "other.json"
    other.write_text("{", encoding="utf-8")
    assert main(["--check", str(other)]) == 2
    assert "is not JSON" in capsys.readouterr().err


@pytest.mark.parametrize(("modelled", "holds"), [(100.0, True), (114.9, True), (85.1, True), (116.0, False)])
def test_a_figure_holds_within_the_tolerance(modelled, holds):
    assert TOLERANCE == 0.15
    assert Compared("p99", modelled, 100.0, judged=True).holds is holds
    assert Compared("p50", modelled, 100.0, judged=False).holds


@pytest.mark.parametrize("wrong", [False, True])
def test_the_check_fails_if_a_judged_figure_is_off(monkeypatch, capsys, wrong):
    rows = [Compared("runs/s", 200.0 if wrong else 101.0, 100.0, judged=True)]
    monkeypatch.setattr("benchmarks.fleet.__main__.check", lambda _: rows)
    assert main(["--check"]) == int(wrong)
    assert ("more than 15%" in capsys.readouterr().out) is wrong
