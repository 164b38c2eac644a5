"""A start may take as long as it makes progress, up to a limit."""

import subprocess
import sys
from pathlib import Path

import pytest

from noonmark.devstack.processes import patience
from noonmark.devstack.processes.errors import DevStackError
from noonmark.devstack.processes.patience import CpuTime, Growth, Patience
from noonmark.devstack.processes.processes import run, wait_until


def test_a_part_that_makes_progress_is_waited_for_and_one_that_does_not_is_given_up():
    working = Patience(stalled_seconds=0).wait_for("worker", lambda: False, lambda: True)
    for _ in range(3):
        working.check("no lease")
    with pytest.raises(
        DevStackError, match=r"^worker was not ready, and made no progress for 0 s: no lease\.$"
    ):
        Patience(stalled_seconds=0).wait_for("worker", lambda: False).check("no lease")


def test_the_limit_holds_whatever_progress_there_is_and_starts_again_for_a_later_start():
    impatient = Patience(0)
    with pytest.raises(
        DevStackError, match=r"after 0 s, the limit of the start: no lease\. Give it .* --timeout"
    ):
        impatient.wait_for("worker", lambda: True).check("no lease")
    impatient.limit_seconds = 60
    impatient.renew()
    impatient.wait_for("worker", lambda: True).check("no lease")


def test_a_long_wait_says_what_it_waits_for(monkeypatch):
    monkeypatch.setattr(patience, "_SAY_SECONDS", 0.0)
    said: list[str] = []
    Patience(say=said.append).wait_for("worker").check("it answers 503 no lease")
    assert said == ["worker: waiting for 0 s: it answers 503 no lease"]


def test_a_wait_ends_when_its_condition_holds():
    answers = iter([False, False, True])
    Patience().wait_for("kafka").until(lambda: next(answers), "nothing answers", interval_seconds=0)
    assert next(answers, "all were asked") == "all were asked"


@pytest.mark.parametrize("below", [False, True], ids=["itself", "a_child"])
def test_cpu_time_of_a_process_and_of_what_it_starts_is_progress(below):
    burn = "import time\nwhile time.process_time() < 30: pass"  # it ends, also if this test is killed
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])" if below else burn
    with subprocess.Popen([sys.executable, "-c", code], process_group=0) as process:
        progress = CpuTime(process.pid)
        try:
            assert wait_until(progress, timeout_seconds=60)
            assert wait_until(progress, timeout_seconds=60), "it is measured again from there"
        finally:
            subprocess.run(["kill", "-9", "--", f"-{process.pid}"], check=True)


def test_a_process_that_waits_or_has_ended_makes_no_progress():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        progress = CpuTime(process.pid)
        progress()
        assert not progress()
        process.communicate(b"\n")
        assert not progress()


def test_a_growing_log_is_progress(tmp_path: Path):
    log = tmp_path / "log"
    progress = Growth(log)
    assert not progress()
    log.write_text("recovering")
    assert progress()
    assert not progress()


def test_a_command_that_makes_no_progress_is_killed_with_a_sentence(tmp_path: Path):
    log = tmp_path / "log"
    code = "import time; time.sleep(600)"
    with pytest.raises(
        DevStackError, match=rf"initdb was not ready, and made no progress for 2 s: its log is {log}"
    ):
        run([sys.executable, "-c", code], log_file=log, name="initdb", patience=Patience(stalled_seconds=2))
    assert run([sys.executable, "-c", "exit(3)"], log_file=log, name="initdb", patience=Patience()) == 3
