"""The benchmark of workflows: its documents, whose turn it is, and what is told of the measurements."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from benchmarks.workflows.__main__ import main
from benchmarks.workflows.against import OTHER, THIS, compared, environment, order
from benchmarks.workflows.documents import chain, create, fan, layers
from benchmarks.workflows.figures import Graph, Plain, Report, Turn, Wide
from benchmarks.workflows.report import rows

DUE = datetime(2030, 1, 1, tzinfo=UTC)


def wide(**changed):
    plain = Plain(10_000.0, 60.0, {}, {}, 1000.0, 1.0)
    values = {
        "workflows": 10,
        "tasks": 100,
        "task_runs": 1000,
        "succeeded": 1010,
        "seconds": 0.1,
        "task_runs_per_s": 6000.0,
        "cpu_us_per_task_run": 100.0,
        "cpu_us_by_process": {"worker": 1.0},
        "cpu_us_by_backend": {},
        "wal_bytes_per_task_run": 1700.0,
        "other_cpu_percent": 1.0,
        "checkpoint": False,
        "passes": 2,
        "facts_per_pass": 500.0,
        "pass_ms": 1.0,
        "plain": plain,
    }
    return Wide(**{**values, **changed})


@pytest.mark.parametrize(
    ("tasks", "count", "edges"), [(fan(100), 100, 196), (chain(10), 10, 9), (layers(3, 4), 12, 32)]
)
def test_its_workflows_are_accepted_with_all_edges(tasks, count, edges):
    compiled = create("bench", tasks, DUE).spec.workflow.tasks
    assert len(compiled) == count
    assert sum(len(task.get("depends_on", ())) for task in tasks.values()) == edges


def test_each_checkout_is_first_in_turn_and_the_last_two_are_the_same():
    assert order(3) == [OTHER, THIS, THIS, OTHER, OTHER, THIS, THIS, THIS]


def test_ratios_are_medians_within_pairs_whatever_their_order():
    cpu = [100.0, 110.0, 120.0, 100.0, 200.0, 202.0, 50.0, 51.0]
    turns = [Turn(which, each, 1000.0, 1.0, 0.0) for which, each in zip(order(3), cpu, strict=True)]
    found = compared("there", 10, turns)
    assert (found.cpu_ratio, found.wal_ratio) == (1.1, 1.0)
    assert found.same_cpu_ratio == 1.02


def test_another_checkout_is_imported_before_this_one(tmp_path: Path):
    (tmp_path / "shared" / "sdk").mkdir(parents=True)
    assert environment(tmp_path)["PYTHONPATH"].split(":") == [
        str(tmp_path / name) for name in (".", "services", "shared/sdk", "schemas")
    ]


def test_half_of_the_plain_runs_is_enough_on_a_slow_machine():
    report = Report("2030-01-01T00:00:00+00:00", wide=wide())
    assert next(iter(rows(report)))[1:] == ("6,000", "5,000", "15,000")
    assert report.as_json()["wide"]["share_of_plain"] == 0.6


def test_a_run_that_did_not_succeed_is_told():
    assert Report("", wide=wide()).is_sound
    assert not Report("", wide=wide(succeeded=1009)).is_sound
    assert not Report("", failed={"hop": "broke"}).is_sound


def test_a_graph_without_layers_is_shown_all_the_same():
    shown = rows(Report("", graph=Graph(1, 1, 1.0, 5, None, 4, 1.0, 4)))
    assert ("  statements", "4", "6", "") in shown


def test_an_unknown_part_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--parts", "maps"])
    assert "no part is called maps" in capsys.readouterr().err
