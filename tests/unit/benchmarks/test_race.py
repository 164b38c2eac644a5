"""`python -m benchmarks.race`: which entrants take part, how rivals are installed, and the table."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from pathlib import Path

import pytest
from benchmarks.plan import FULL_SIZE
from benchmarks.race.installation import fingerprint, install, missing
from benchmarks.race.plan import race_plan_of
from benchmarks.race.results import Entry, Race
from benchmarks.race.rivals import RIVALS, Rival, environment_of
from benchmarks.stack import BenchmarkError
from tests.unit.benchmarks import samples

PGQUEUER = RIVALS["pgqueuer"]


def installable(*programs: str, tools: tuple[str, ...] = ()) -> Rival:
    """A rival that Python programs install."""
    return dataclasses.replace(
        PGQUEUER, tools=tools, install=lambda _folder: tuple((sys.executable, "-c", one) for one in programs)
    )


def silent(_what: str) -> None:
    """Print nothing."""


def test_all_entrants_take_part_by_default():
    plan = race_plan_of([])
    assert plan.entrants == ("bare", "noonmark", "pgqueuer", "graphile-worker", "river", "db-scheduler")
    assert (plan.size, plan.install) == (FULL_SIZE, ())


def test_rivals_are_kept_in_the_cache_folder_unless_another_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("NOONMARK_CACHE_DIR", str(tmp_path))
    assert race_plan_of([]).rivals_folder == tmp_path / "race"
    assert race_plan_of(["--rivals", "elsewhere"]).rivals_folder == Path("elsewhere")


def test_a_small_size_shrinks_the_windows_of_a_race():
    assert race_plan_of(["--size", "5000"]).window(20) == 3


@pytest.mark.parametrize(
    ("arguments", "named"),
    [([], ()), (["--install"], tuple(RIVALS)), (["--install", "river,pgqueuer"], ("river", "pgqueuer"))],
)
def test_rivals_are_installed_on_request(arguments, named):
    assert race_plan_of(arguments).install == named


@pytest.mark.parametrize("arguments", [["--only", "bare,lunch"], ["--install", "noonmark"], ["--only", ","]])
def test_an_unknown_entrant_is_refused(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        race_plan_of(arguments)
    assert ended.value.code == 2
    assert "known: " in capsys.readouterr().err


@pytest.mark.parametrize("rival", RIVALS.values(), ids=lambda rival: rival.name)
def test_the_version_in_the_table_is_the_version_that_is_installed(rival):
    commands = " ".join(word for command in rival.install(Path("folder")) for word in command)
    sources = " ".join(
        file.read_text() for file in rival.program.iterdir() if file.suffix in {".xml", ".mod"}
    )
    assert re.search(rf"[^\d.]{re.escape(rival.version)}(?![\d.])", f"{commands} {sources}")


@pytest.mark.parametrize("rival", RIVALS.values(), ids=lambda rival: rival.name)
def test_a_rival_that_is_not_installed_is_named_with_the_command_that_installs_it(rival, tmp_path):
    reason = missing(rival, tmp_path)
    assert reason is not None
    command = reason.partition("install it with: ")[2].split()
    assert command[:3] == ["python", "-m", "benchmarks.race"]
    plan = race_plan_of(command[3:])
    assert (plan.install, plan.rivals_folder) == ((rival.name,), tmp_path)


def test_an_installed_rival_takes_part_until_its_version_changes(tmp_path):
    rival = installable("open('installed-here', 'w')")
    install(rival, tmp_path, silent)
    assert (tmp_path / rival.name / "installed-here").exists()
    assert (tmp_path / rival.name / "program.py").read_text() == (rival.program / "program.py").read_text()
    assert missing(rival, tmp_path) is None
    assert "another version" in (missing(dataclasses.replace(rival, version="99"), tmp_path) or "")


def test_an_installation_that_failed_does_not_count_and_can_be_repeated(tmp_path):
    with pytest.raises(BenchmarkError, match="exited with 3"):
        install(installable("raise SystemExit(3)"), tmp_path, silent)
    repaired = installable("pass")
    assert missing(repaired, tmp_path) is not None
    install(repaired, tmp_path, silent)
    assert missing(repaired, tmp_path) is None


def test_a_folder_that_holds_something_else_is_not_replaced(tmp_path):
    kept = tmp_path / PGQUEUER.name / "mine.txt"
    kept.parent.mkdir()
    kept.write_text("mine")
    with pytest.raises(BenchmarkError, match="is not an installed rival"):
        install(installable("pass"), tmp_path, silent)
    assert kept.read_text() == "mine"


def test_a_tool_that_is_missing_is_named(tmp_path):
    with pytest.raises(BenchmarkError, match="needs no-such-tool"):
        install(installable("pass", tools=("no-such-tool",)), tmp_path, silent)


def test_working_copies_share_installed_rivals(monkeypatch):
    before = fingerprint(PGQUEUER)
    monkeypatch.setattr(sys, "executable", "/another/copy/bin/python")
    assert fingerprint(PGQUEUER) == before


def test_programs_receive_the_database_in_two_forms():
    found = environment_of("postgresql://me:secret@127.0.0.1:5432/rival")
    assert found["RACE_URL"] == "postgresql://me:secret@127.0.0.1:5432/rival"
    assert found["RACE_JDBC"].startswith("jdbc:postgresql://127.0.0.1:5432/rival?user=me&password=secret&")


def race(*entries: Entry) -> Race:
    return Race(100_000, "2030-01-01T00:00:00+00:00", 60.0, entries=list(entries))


def test_the_table_has_one_row_for_each_entrant_that_was_measured():
    bare = Entry("bare design", "kept")
    bare.burst = samples.other_burst(runs_per_s=12_345.6, cpu_us_per_run=80.4, wal_bytes_per_run=1161.0)
    bare.open_loops = [samples.other_window(1000, 0.018), samples.other_window(5000, 0.046)]
    absent = Entry("river", "kept for a day", absent="not installed; install it with: this command")
    lines = race(bare, absent).as_markdown().splitlines()
    assert lines[2] == "| bare design | 12,346 | 80 | 1,161 | 18 / 18 | 46 / 46 | kept | 0 |"
    assert [line for line in lines if line.startswith("| ")] == lines[:3]
    assert "- river: not installed; install it with: this command" in lines


def test_what_failed_or_was_lost_is_said_below_the_table():
    failed = Entry("pgqueuer", "a log row", failed={"burst": "BenchmarkError: it\nbroke"})
    lossy = Entry("river", "kept for a day", burst=samples.other_burst(lost=3))
    text = race(failed, lossy).as_markdown()
    assert "| pgqueuer | - | - | - | - | - | a log row | - |" in text
    assert "- pgqueuer: burst failed: BenchmarkError: it broke" in text
    assert "- river: 3 jobs of the burst have no outcome" in text
    assert (failed.is_whole, lossy.is_whole, Entry("db-scheduler", "deleted").is_whole) == (
        False,
        False,
        True,
    )


def test_the_json_of_a_race_has_the_same_figures_as_the_table():
    entry = Entry("noonmark", "kept", burst=samples.burst(), open_loops=[samples.open_loop(1000)])
    shown = json.loads(json.dumps(race(entry).as_json()))
    assert shown["entries"][0]["burst"]["wal_bytes_per_run"] == 1500.0
    assert shown["entries"][0]["open_loops"][0]["rate"] == 1000
