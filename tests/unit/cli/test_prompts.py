"""Prompts for confirmation: a no and the end of the input abort, Ctrl-C ends as everywhere."""

import signal
import subprocess
import sys

import pytest

ASK = """
import signal, typer
from noonmark.cli.terminal.bulk_requests import agree
signal.signal(signal.SIGINT, signal.default_int_handler)
app = typer.Typer()
@app.command()
def ask() -> None:
    agree("Go?", yes=False)
    print("gone")
app()
"""
LIMIT_SECONDS = 60


def asked() -> subprocess.Popen[str]:
    """Start a program that prompts, and wait for its prompt."""
    program = subprocess.Popen(
        [sys.executable, "-c", ASK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    assert program.stdout.read(len("Go? [y/N]:")) == "Go? [y/N]:"
    return program


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_an_answer_decides(answer, code):
    with asked() as program:
        shown, _ = program.communicate(answer, timeout=LIMIT_SECONDS)
    assert (program.returncode, "gone" in shown) == (code, code == 0)


def test_ctrl_c_at_a_prompt_ends_with_the_code_of_an_interrupt():
    with asked() as program:
        program.send_signal(signal.SIGINT)
        shown, errors = program.communicate(timeout=LIMIT_SECONDS)
    assert (program.returncode, "gone" in shown, "Aborted" in errors) == (130, False, False)
