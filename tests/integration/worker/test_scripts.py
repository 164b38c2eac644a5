"""Script jobs as real processes: what they get, how they end, what they cannot do."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import orjson
import psutil
import pytest
from tests.integration.worker.script_bench import SH, Scripts
from tests.unit.worker.bench import PATIENCE

from noonmark.core.states import AttemptOutcome, RunState
from noonmark.schemas.jobs.script_payload import ScriptPayload
from noonmark.store.runs.finish import Outcome

BASH = shutil.which("bash")


@pytest.fixture
def make(make_scripts: Callable[..., Scripts]) -> Callable[..., Scripts]:
    return make_scripts


def printed(outcome: Outcome) -> str:
    assert outcome.extras is not None
    assert outcome.extras.log is not None
    return outcome.extras.log.stdout.text()


def test_no_shell_reads_the_arguments(scripts):
    outcome = scripts.script("printf", "%s|", "$HOME; `id`", "a b", "", "*", "ü")
    assert (outcome.state, outcome.result) == (RunState.SUCCEEDED, '{"exit_code":0}')
    assert printed(outcome) == "$HOME; `id`|a b||*|ü|"


def test_a_script_knows_its_run_and_nothing_of_the_worker(make, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("LC_", "LANG", "TZ", "HOME"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NOONMARK_DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("TZ", "UTC")
    scripts = make()
    held = scripts.start("/usr/bin/env", "-0", env={"MODE": "full"})
    variables = dict(line.split("=", 1) for line in printed(scripts.end(held)).split("\\x00")[:-1])
    folder = variables.pop("TMPDIR")
    assert variables.pop("NOONMARK_PROCESS")
    assert variables == {
        "PATH": os.environ["PATH"],
        "TZ": "UTC",
        "MODE": "full",
        "NOONMARK_RUN_ID": str(held.run.id),
        "NOONMARK_JOB_ID": str(held.run.job_id),
        "NOONMARK_NAMESPACE": "tests",
        "NOONMARK_ATTEMPT": "1",
        "NOONMARK_FENCE": "1",
        "NOONMARK_IDEMPOTENCY_KEY": f"{held.run.job_id}/2026-06-01T09:00:00.000000Z/schedule/",
        "NOONMARK_SCHEDULED_FOR": "2026-06-01T09:00:00+00:00",
    }
    scripts.wait(lambda: not Path(folder).exists(), "the folder to be removed")


def test_it_runs_in_a_folder_of_its_own_that_is_removed_or_in_the_one_it_names(scripts, tmp_path):
    own = Path(printed(scripts.shell("pwd; mkdir -p deep/er; echo x > deep/er/file")).strip())
    assert own.name.startswith("noonmark-")
    scripts.wait(lambda: not own.exists(), "the folder to be removed")
    assert printed(scripts.shell("pwd", cwd=str(tmp_path))).strip() == str(tmp_path)
    missing = scripts.shell("pwd", cwd=str(tmp_path / "none"))
    assert missing.error == f"the script could not be started: No such file or directory: {tmp_path}/none"


def test_the_removal_of_a_large_folder_neither_times_out_nor_delays_a_script_that_has_ended(
    make, monkeypatch
):
    removable = threading.Event()
    remove = shutil.rmtree

    def slow(folder, **options):
        assert removable.wait(PATIENCE)
        remove(folder, **options)

    monkeypatch.setattr(shutil, "rmtree", slow)
    scripts = make()
    try:
        held = scripts.start(SH, "-c", "pwd", timeout_seconds=PATIENCE / 2)
        outcome = scripts.end(held)
        assert (outcome.state, outcome.error) == (RunState.SUCCEEDED, None)
        folder = Path(printed(outcome).strip())
        assert folder.exists()
    finally:
        removable.set()
    scripts.wait(lambda: not folder.exists(), "the folder to be removed")


def test_standard_input_is_text_or_json_or_empty(scripts):
    assert printed(scripts.script("cat", stdin="plain ü\n")) == "plain ü\n"
    assert printed(scripts.script("cat", stdin={"a": [1]})) == '{"a":[1]}'
    assert scripts.script("cat").extras is None
    assert printed(scripts.script("wc", "-c", stdin="x" * 300_000)).strip() == "300000"


def test_it_has_three_descriptors_a_session_of_its_own_and_gains_no_privileges(scripts):
    code = (
        "import os; print(sorted(int(f) for f in os.listdir('/proc/self/fd'))[:3], os.getsid(0) == os.getpid(), "
        "os.getpgrp() == os.getpid(), [l for l in open('/proc/self/status') if l.startswith('NoNewPrivs')], "
        "len(os.listdir('/proc/self/fd')))"
    )
    told = printed(scripts.script(sys.executable, "-c", code))
    # The fourth one is that of the folder which is listed.
    assert told == "[0, 1, 2] True True ['NoNewPrivs:\\t1\\n'] 4\n"


@pytest.mark.parametrize(
    ("text", "more", "error"),
    [
        ("exit 3", {}, "the script ended with exit code 3"),
        ("exit 0", {"success_exit_codes": [4]}, "the script ended with exit code 0"),
        ("kill -SEGV $$", {}, "the script was killed by SIGSEGV"),
        (
            "kill -KILL $$",
            {},
            "the script was killed by SIGKILL; the kernel does this when memory runs out",
        ),
        ("kill -40 $$", {}, "the script was killed by signal 40"),
        (
            "while :; do :; done",
            {"limits": {"cpu_seconds": 1}},
            "the script was killed: it used more than 1 s of CPU time (limits.cpu_seconds)",
        ),
        pytest.param(
            "trap '' XCPU; while :; do :; done",
            {"limits": {"cpu_seconds": 1}},
            "the script was killed: it used more than 1 s of CPU time (limits.cpu_seconds)",
            marks=pytest.mark.slow,
        ),
        (
            "exec head -c 100000 /dev/zero > file",
            {"limits": {"file_bytes": 1000}},
            "the script was killed: it wrote a file of more than 1000 bytes (limits.file_bytes)",
        ),
    ],
)
def test_a_script_that_fails_says_how(scripts, text, more, error):
    outcome = scripts.shell(text, **more)
    assert (outcome.state, outcome.attempt_outcome) == (RunState.DEAD, AttemptOutcome.FAILED)
    assert outcome.error == error


def test_exit_codes_that_count_as_success(scripts):
    outcome = scripts.shell("exit 4", success_exit_codes=[0, 4])
    assert (outcome.state, outcome.result) == (RunState.SUCCEEDED, '{"exit_code":4}')


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("echo noise; echo '{\"n\": 1}'; echo", {"exit_code": 0, "output": {"n": 1}}),
        ("echo '{\"n\": 1}'; echo no json", {"exit_code": 0}),
        ("true", {"exit_code": 0}),
        # JSON that Postgres does not keep, or that is nested too deeply: the exit code is the verdict.
        ("echo '\"\\u0000\"'", {"exit_code": 0}),
        ("printf '[%.0s' $(seq 300); printf ']%.0s' $(seq 300)", {"exit_code": 0}),
    ],
)
def test_the_last_line_can_be_the_result(scripts, text, result):
    assert orjson.loads(scripts.shell(text, result="json").result) == result


GREEDY = {
    "memory": ("bytearray(20 << 30)", {"memory_bytes": 1 << 30}, "memory_bytes = 1073741824", "MemoryError"),
    "files": (
        "a = [open('/dev/null') for n in range(100)]",
        {"open_files": 50},
        "open_files = 50",
        "Too many open files",
    ),
    # Python ignores the signal and gets an error instead.
    "file": (
        "open('f', 'wb').write(bytes(9000))",
        {"file_bytes": 1000},
        "file_bytes = 1000",
        "File too large",
    ),
}


@pytest.mark.parametrize("name", GREEDY)
def test_a_limit_that_only_the_script_itself_sees_is_named_with_the_evidence(scripts, name):
    code, limits, limit, said = GREEDY[name]
    outcome = scripts.script(sys.executable, "-c", code, limits=limits)
    assert outcome.state is RunState.DEAD
    assert outcome.error == (
        f'the script ended with exit code 1, probably because of limits.{limit}: its standard error says "{said}"'
    )


@pytest.mark.parametrize("name", GREEDY)
def test_without_a_limit_its_words_prove_nothing(scripts, name):
    code = f"import sys; sys.exit({GREEDY[name][3]!r})"
    outcome = scripts.script(sys.executable, "-c", code, limits={"cpu_seconds": 100})
    assert outcome.error == "the script ended with exit code 1"


@pytest.mark.parametrize("name", GREEDY)
def test_without_its_words_no_limit_is_blamed(scripts, name):
    outcome = scripts.script(sys.executable, "-c", "raise SystemExit(1)", limits=GREEDY[name][1])
    assert outcome.error == "the script ended with exit code 1"


@pytest.mark.parametrize(
    ("text", "limits", "error"),
    [
        (
            "head -c 100000 /dev/zero > file; exit $?",
            {"file_bytes": 1000},
            (
                "exit code 153, probably because of limits.file_bytes = 1000: the exit code is that of a shell whose "
                "command was killed by SIGXFSZ"
            ),
        ),
        (
            "sh -c 'while :; do :; done'; exit $?",
            {"cpu_seconds": 1},
            (
                "exit code 152, probably because of limits.cpu_seconds = 1: the exit code is that of a shell whose "
                "command was killed by SIGXCPU"
            ),
        ),
        ("exit 153", {"open_files": 100}, "exit code 153"),
        (
            "echo 'Cannot allocate memory' >&2; kill -ABRT $$",
            {"memory_bytes": 1 << 30},
            (
                "was killed by SIGABRT, probably because of limits.memory_bytes = 1073741824: its standard error says "
                '"Cannot allocate memory"'
            ),
        ),
        # The last words count, and those of long ago do not.
        (
            "echo 'MemoryError' >&2; echo 'Too many open files' >&2; exit 1",
            {"memory_bytes": 1 << 30, "open_files": 100},
            'exit code 1, probably because of limits.open_files = 100: its standard error says "Too many open files"',
        ),
        ("(echo MemoryError; head -c 5000 /dev/zero) >&2; exit 1", {"memory_bytes": 1 << 30}, "exit code 1"),
        ("echo 'Too many open files in system' >&2; exit 1", {"open_files": 100}, "exit code 1"),
        # Nothing of it ran: the loader could not map the C library.
        (
            "exec true",
            {"memory_bytes": 1 << 20},
            (
                "exit code 127, probably because of limits.memory_bytes = 1048576: its standard error says "
                '"failed to map segment from shared object"'
            ),
        ),
    ],
)
def test_what_a_shell_and_the_last_words_of_a_script_show(scripts, text, limits, error):
    outcome = scripts.shell(text, limits=limits)
    assert outcome.error.removeprefix("the script ").removeprefix("ended with ") == error


def test_a_script_with_more_processes_than_its_limit_is_killed(scripts):
    many = "for n in $(seq 60); do sleep 600 & done; wait"
    outcome = scripts.script(BASH, "-c", many, limits={"processes": 30})
    assert outcome.error == "the script was killed: it had more than 30 processes (limits.processes)"


def test_output_without_end_is_bounded_and_does_not_keep_the_script_waiting(scripts):
    outcome = scripts.shell("head -c 30000000 /dev/zero | tr '\\0' 'y'; printf 'end\\377\\0'")
    assert outcome.state is RunState.SUCCEEDED
    log = outcome.extras.log
    # The replacement character and the escape of NUL are stored with five bytes more than were printed.
    assert log.dropped == 30_000_010 - 65536
    assert log.stdout.text().endswith("yend\ufffd\\x00")


def test_a_script_that_prints_for_ever_keeps_memory_flat(scripts):
    held = scripts.start("yes", timeout_seconds=1.0)
    scripts.wait(lambda: held.began_at, "the script to begin")
    before = psutil.Process().memory_info().rss
    outcome = scripts.end(held)
    assert outcome.attempt_outcome is AttemptOutcome.TIMED_OUT
    assert outcome.extras.log.dropped > 10_000_000
    assert psutil.Process().memory_info().rss - before < 50_000_000


def test_a_limit_ends_all_that_a_script_started(scripts, tmp_path):
    # One that ignores SIGTERM, one that left the session and lost its parent, one that cleared its environment, too.
    text = (
        "trap '' TERM; echo $$ > a; sh -c \"trap '' TERM; echo \\$\\$ > b; while :; do sleep 1; done\" & "
        "setsid sh -c '(echo $$ > c; exec sleep 600) &' ; "
        "setsid env -i PATH=$PATH sh -c '(sleep 600 & echo $! > d) &' ; "
        "while :; do sleep 1; done"
    )
    held = scripts.start(SH, "-c", text, cwd=str(tmp_path), timeout_seconds=1.0)
    outcome = scripts.end(held)
    assert outcome.attempt_outcome is AttemptOutcome.TIMED_OUT
    assert outcome.error == "timed out after 1 s"
    pids = [int((tmp_path / name).read_text()) for name in "abd"]
    # All were killed before the outcome; the kernel may need a moment until the last of them is gone.
    scripts.wait(lambda: not any(map(psutil.pid_exists, pids)), "all that the script started to be gone")


def test_a_script_may_clean_up_and_is_cancelled_once_it_is_over(make, tmp_path):
    scripts = make(grace_seconds=30)
    held = scripts.start(
        SH, "-c", "trap 'echo bye; exit 0' TERM; touch began; while :; do sleep 0.01; done", cwd=str(tmp_path)
    )
    scripts.wait((tmp_path / "began").exists, "the script to begin")
    scripts.executors.cancel([held.key])
    outcome = scripts.end(held)
    assert outcome.state is RunState.CANCELLED
    assert printed(outcome) == "bye\n"


def test_scripts_are_off_unless_the_operator_names_them(make, tmp_path):
    tool, other = tmp_path / "tools" / "tool", tmp_path / "other"
    tool.parent.mkdir()
    for path in (tool, other):
        path.write_text("#!/bin/sh\necho done\n")
        path.chmod(0o755)
    (tool.parent / "link").symlink_to(other)
    off, some = make(allowed=()), make(allowed=(str(tool.parent), "/bin/true"))
    outcome = off.script(str(tool))
    assert (outcome.attempt_outcome, outcome.state) == (AttemptOutcome.REJECTED, RunState.RETRYING)
    assert "NOONMARK_SCRIPTS" in outcome.error
    assert some.script(str(tool)).state is RunState.SUCCEEDED
    assert some.script("true").state is RunState.SUCCEEDED
    for path in (other, tool.parent / "link", tool.parent / ".." / "other"):
        assert some.script(str(path)).error == f"NOONMARK_SCRIPTS of this worker does not allow '{other}'"
    assert "is a relative path" in some.script("./tool").error
    assert some.script("/nowhere/tool").error == "this worker has no executable '/nowhere/tool'"


def test_secrets_go_into_the_environment_and_input_and_nowhere_else(make):
    scripts = make(environment={"NOONMARK_SECRET_TESTS__TOKEN": "hunter2-hunter2"})
    held = scripts.start(
        SH,
        "-c",
        'test "$TOKEN" = hunter2-hunter2 && test "$(cat)" = "t=hunter2-hunter2" && echo $TOKEN',
        env={"TOKEN": "secret://token"},
        stdin="t=${secret://token}",
    )
    outcome = scripts.end(held)
    assert outcome.state is RunState.SUCCEEDED
    assert "hunter2" not in printed(outcome)
    # As of a job that was taken before such arguments were refused.
    spelt = {**ScriptPayload(argv=["echo"]).request(), "argv": ["echo", "secret://token"]}
    refused = scripts.end(scripts.begin(kind="script", payload=spelt, timeout_seconds=60.0))
    assert "argv may not contain a secret" in refused.error


def test_a_keeper_that_dies_takes_its_children_along_and_the_next_run_has_another(scripts, tmp_path):
    held = scripts.start(SH, "-c", "echo $$ > pid; exec sleep 600", cwd=str(tmp_path))
    scripts.wait(
        lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the script to begin"
    )
    (launcher,) = [p for p in psutil.Process().children() if "supervisor.py" in " ".join(p.cmdline())]
    launcher.kill()
    assert scripts.end(held).error == "the script was lost: the supervisor of child processes has ended"
    pid = int((tmp_path / "pid").read_text())
    scripts.wait(
        lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie", "the script to end"
    )
    assert scripts.shell("true").state is RunState.SUCCEEDED
