"""`python -m benchmarks.run_path`: what counts as a station, and which copy of noonmark is measured."""

import json
import os
import subprocess
import sys

from benchmarks.run_path import SERVICES, FileOnPath, environment, files_on_path, report, stations
from tests.unit.docs.pages import ROOT


def test_a_station_is_entered_in_every_run_and_in_no_idle_window():
    runs = [
        {("a.py", "poll"): 1.0, ("a.py", "take"): 3.0, ("b.py", "write"): 2.0},
        {("a.py", "poll"): 1.0, ("a.py", "take"): 2.0, ("b.py", "write"): 3.0, ("c.py", "sweep"): 4.0},
    ]
    idle = [{("a.py", "poll"): 9.0}, {("c.py", "sweep"): 9.0}]

    assert stations(runs, idle) == [("b.py", "write"), ("a.py", "take")]


def test_files_are_listed_in_the_order_of_their_first_call_with_their_lines(tmp_path):
    (tmp_path / "a.py").write_text("1\n2\n3\n")
    (tmp_path / "b.py").write_text("1\n")
    found = [("b.py", "write"), ("a.py", "take"), ("b.py", "close")]

    assert files_on_path(found, tmp_path) == [
        FileOnPath("b.py", 1, ["write", "close"]),
        FileOnPath("a.py", 3, ["take"]),
    ]


def test_a_file_on_the_path_of_two_services_counts_once_in_the_total(tmp_path):
    (tmp_path / "a.py").write_text("1\n2\n")
    runs = {service: [{("a.py", "take"): 1.0}] for service in SERVICES[:2]} | {
        service: [{}] for service in SERVICES[2:]
    }
    idle = {service: [{}] for service in SERVICES}

    found = report(runs, idle, tmp_path)

    assert found["total"] == {"files": 1, "lines": 2, "stations": 1}
    assert [one["files"] for one in found["services"].values()] == [1, 1, 0, 0]


def test_only_the_tree_that_is_measured_is_on_the_module_path(tmp_path):
    for root in ("services", "shared", "schemas"):
        (tmp_path / root / "noonmark" / f"from_{root}").mkdir(parents=True)
    program = "import json, noonmark; print(json.dumps(list(noonmark.__path__)))"

    printed = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={**os.environ, **environment(tmp_path, tmp_path)},
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    assert json.loads(printed) == [
        str(tmp_path / root / "noonmark") for root in ("services", "shared", "schemas")
    ]
