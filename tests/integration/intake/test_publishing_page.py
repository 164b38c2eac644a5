"""docs/publishing.md: what it shows of a rejected submission is what the commands print."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.cli import call
from tests.support.doc_blocks import blocks_of

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

PAGE = Path(__file__).parents[3] / "docs" / "publishing.md"

VARIES = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "EVENT"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z", "TIME"),
    (r"[\w.-]+/\d/\d+\b", "POSITION"),
)
"""What differs with each time that the commands are typed."""


def samples() -> Iterator[tuple[str, str]]:
    """The commands of the page's block about rejections, each with the output below it."""
    (block,) = [one for one in blocks_of(PAGE, "console") if "rejection list" in one.code]
    for part in re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield re.sub(r"\s+# .*$", "", command), output


def head_of(command: str) -> list[str]:
    """The first line that the page shows below a command."""
    text = PAGE.read_text(encoding="utf-8")
    return text[text.index(f"$ .venv/bin/{command}\n") :].splitlines()[1].split()


def masked(text: str) -> str:
    for pattern, name in VARIES:
        text = re.sub(pattern, name, text)
    return text.rstrip()


def test_a_rejected_submission_is_shown_as_on_the_page(line, monkeypatch, tmp_path):
    for name, value in line.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    (submit, _), *shown = samples()
    echo, document, pipe, program, *words = shlex.split(submit)
    assert (echo, pipe, program) == ("echo", "|", ".venv/bin/noonmark")
    assert json.loads(document)

    with line.intake():
        call(*words, stdin=document)
        line.wait(lambda: line.count("rejections") == 1, "the rejection")
        assert [command.split()[1:3] for command, _ in shown] == [
            ["rejection", "list"],
            ["rejection", "show"],
        ]
        for command, output in shown:
            assert masked(call(*command.split()[1:]).stdout) == masked(output)


def test_the_listing_of_runs_has_the_columns_of_the_page(command_line):
    assert call("run", "list").stdout.split() == head_of("noonmark run list")
