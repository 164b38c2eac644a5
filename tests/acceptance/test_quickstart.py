"""docs/quickstart.md and docs/everyday-tasks.md, typed by a new user: every command, in its order, on one stack."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.doc_blocks import blocks_of

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "docs" / "quickstart.md"
TASKS = ROOT / "docs" / "everyday-tasks.md"
BIN = Path(sys.executable).parent

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.slow]

INSTEAD = {
    # The folder is not a checkout, so that nothing of the reader's is touched; the targets do the same.
    "make up ARGS=--detach": "noonmark dev up --detach",
    "make down": "noonmark dev down",
    "source .venv/bin/activate": "true",
}
SAYS = {
    "noonmark dev status": ["api", "worker", "/api-key"],
    "noonmark job apply -f examples/quickstart.yaml --dry-run": [
        "tick",
        "nightly-report",
        "import-customers",
    ],
    "noonmark job list": ["tick", "nightly-report", "import-customers"],
    "noonmark run list --job tick": ["succeeded"],
    "noonmark why tick": ["paused", "maintenance of the target"],
    "noonmark dead list": ["import-customers"],
    "noonmark dead groups": ["customers.pdf is not a CSV file"],
    "noonmark audit": ["job.pause", "key.create"],
    'curl -sS -H "Authorization: Bearer $KEY" "$URL/v1/me"': ['"platform":true'],
    'curl -sS -H "Authorization: Bearer $KEY" "$URL/v1/jobs?label=team:finance"': ["nightly-report"],
    "noonmark signing-key show default": ["whsec_"],
    "noonmark why close-books": ["close-books"],
    "noonmark dead redrive --since yesterday --until today --yes": ["redrive of 0 dead runs"],
    'noonmark job pause --label team:finance --reason "the ledger is being migrated" --yes': ["close-books"],
    "noonmark admin key create lena --grant default=viewer --expires-in 90d": ["nmk_"],
    "noonmark run logs nightly-report -f": ["run is succeeded"],
    "noonmark job apply -f jobs.yaml": ["unchanged"],
}
"""What a command must say; of all of them the exit code is looked at."""


def commands() -> Iterator[str]:
    """The commands of both pages; the stack is stopped last."""
    *first, stop = commands_of(QUICKSTART)
    yield from first
    yield from commands_of(TASKS)
    yield stop


def commands_of(page: Path) -> Iterator[str]:
    """The commands of a page, with the lines that go on."""
    for block in blocks_of(page, "console"):
        if not block.is_run:
            continue
        command = ""
        for line in block.code.splitlines():
            if line.startswith("$ "):
                if command:
                    yield command
                command = line.removeprefix("$ ")
            else:
                command += f"\n{line}"
        yield command


class Shell:
    """A shell in a folder; variables that one command sets are there for the next."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        kept = {name: text for name, text in os.environ.items() if not name.startswith("NOONMARK_")}
        cached = {
            name: os.environ[name]
            for name in ("NOONMARK_CACHE_DIR", "NOONMARK_KAFKA_LIBS")
            if name in os.environ
        }
        self._env = {**kept, **cached, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
        self._set: list[str] = []

    def __call__(self, command: str) -> str:
        script = "\n".join([*self._set, command])
        done = subprocess.run(
            ["bash", "-c", script], cwd=self._folder, env=self._env, capture_output=True, text=True, timeout=120, check=False
        )  # fmt: skip
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        if command.split("=", maxsplit=1)[0].isupper() and "=" in command:
            self._set.append(command)
        return done.stdout


def wait_for(found: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.2)


@pytest.mark.timeout(900)
def test_every_command_of_the_pages_works_and_shows_what_it_is_there_to_show(tmp_path: Path, capsys):
    tmp_path.chmod(0o711)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shell = Shell(tmp_path)

    def items(command: str) -> list[dict[str, object]]:
        return list(json.loads(shell(f"{command} --json"))["items"])

    # A reader looks again; so does this.
    before = {
        "noonmark run list --job tick": lambda: bool(items("noonmark run list --job tick --state succeeded")),
        "noonmark dead list": lambda: bool(items("noonmark dead list")),
    }
    transcript: list[str] = []
    wrong: list[str] = []
    try:
        for command in commands():
            if command in before:
                wait_for(before[command], command)
            shown = shell(INSTEAD.get(command, command))
            transcript.append(f"$ {command}\n{shown}")
            wrong += [
                f"{text!r} is missing in\n{transcript[-1]}"
                for text in SAYS.get(command, [])
                if text not in shown
            ]
        assert not wrong, "\n".join(wrong)
        assert all(any(command in line for line in transcript) for command in SAYS)
    finally:
        shell("noonmark dev down")
    (tmp_path / "transcript.txt").write_text("\n".join(transcript))
    with capsys.disabled():
        print(f"\nquick start: {len(transcript)} commands; {tmp_path / 'transcript.txt'}")
