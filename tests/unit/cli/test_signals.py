"""Signals that arrive while the program loads or a command runs."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from noonmark.cli.main import main

LIMIT_SECONDS = 60


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """Tests in the background of a shell ignore SIGINT, and so would what they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def stopped(
    tmp_path: Path, number: signal.Signals, loaded: str, words: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    """Run the program and send it a signal as soon as it has loaded a module; return how it ended."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("NOONMARK_")}
    process = subprocess.Popen(
        # Python itself says when it has loaded each module.
        [sys.executable, "-X", "importtime", "-P", "-m", "noonmark.cli", *words],
        cwd=tmp_path,
        env={**env, "NOONMARK_DATABASE_URL": "postgresql://127.0.0.1:1/jobs"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if line.split()[-1] == loaded:
            process.send_signal(number)
            break
    seen.append(process.communicate(timeout=LIMIT_SECONDS)[1])
    return subprocess.CompletedProcess(words, process.returncode, "", "".join(seen))


@pytest.mark.parametrize(
    ("loaded", "words", "number"),
    [
        ("typer.colors", ["trigger"], signal.SIGINT),
        ("typer.colors", ["job", "list"], signal.SIGTERM),
        ("noonmark.settings", ["trigger"], signal.SIGINT),
        ("noonmark.settings", ["worker"], signal.SIGTERM),
        ("noonmark.settings", ["observer"], signal.SIGINT),
        ("noonmark.settings", ["api"], signal.SIGTERM),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_a_program_that_is_stopped_while_it_loads_ends_with_one_line_and_the_code_of_the_signal(
    tmp_path, loaded, words, number
):
    done = stopped(tmp_path, number, loaded, words)
    said = [line for line in done.stderr.splitlines() if not line.startswith("import time:")]
    assert said == [f"noonmark: stopped by {number.name}"]
    assert done.returncode == 128 + number


@pytest.mark.parametrize(
    ("number", "told"), [(signal.SIGINT, ""), (signal.SIGTERM, "noonmark: stopped by SIGTERM\n")]
)
def test_a_command_that_waits_ends_with_the_code_of_the_signal_and_without_a_traceback(
    tmp_path, number, told
):
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "noonmark.cli", "schedule", "next", "-f", "-"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # The command has begun to read its input once it has taken this much of it.
    assert process.stdin is not None
    process.stdin.write("# a comment\n" * 20_000)
    process.stdin.flush()
    process.send_signal(number)
    _, said = process.communicate(timeout=LIMIT_SECONDS)
    assert said == told
    assert process.returncode == 128 + number


def test_an_interrupt_before_the_command_is_known_ends_with_one_line(monkeypatch, capsys):
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("noonmark.cli.main.app", interrupted)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "noonmark: stopped by SIGINT\n"


def test_a_signal_that_the_caller_ignores_stays_ignored(tmp_path):
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from noonmark.cli.terminal.signals import ended_by_signals\n"
        "with ended_by_signals():\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "print('went on')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "went on\n"
