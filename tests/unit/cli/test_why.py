"""What `noonmark why` prints, and that every command that an answer tells of exists."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from tests.support.cli import command_of

from noonmark.cli.main import app
from noonmark.cli.runs.why import lines
from noonmark.core.why.answers import REMEDIES, Blocker, answer

COMMANDS = [
    (code, found)
    for code, remedy in REMEDIES.items()
    for found in re.findall(r"`noonmark ([^`]+)`", remedy.replace("{", "").replace("}", ""))
]


def document(*answers: dict[str, Any], **given: Any) -> dict[str, Any]:
    about = {
        "kind": "job",
        "id": "1",
        "job_id": "1",
        "job_name": "tick",
        "namespace": "shop",
        "state": "active",
    }
    return {**about, "answers": list(answers), **given}


def one(sentence: str, remedy: str, *, blocks: bool = True) -> dict[str, Any]:
    return {"code": "x", "blocks": blocks, "sentence": sentence, "remedy": remedy, "facts": {}}


@pytest.mark.parametrize(("code", "line"), COMMANDS)
def test_every_command_that_is_recommended_exists_with_its_options(code, line):
    command: Any = command_of(app)
    words = shlex.split(line)
    while words and (below := getattr(command, "commands", None)):
        word = words.pop(0)
        assert word in below, f"{code}: noonmark {line}"
        command = below[word]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known, f"{code}: noonmark {line}"


def test_the_first_answer_leads_then_come_the_others_then_what_to_do():
    shown = lines(
        document(
            one("it waits for a limit", "Wait."),
            one("no live triggers", "Start one."),
            one("it is due later", "Nothing to do.", blocks=False),
        )
    )

    assert shown == [
        "job tick in namespace shop is active",
        "",
        "It waits for a limit",
        "",
        "Also:",
        "- no live triggers",
        "- it is due later",
        "",
        "What to do:",
        "- Wait.",
        "- Start one.",
    ]


def test_where_nothing_blocks_the_first_answer_says_what_to_do():
    shown = lines(
        document(one("it succeeded", "Nothing to do.", blocks=False), kind="run", state="succeeded")
    )

    assert shown[0] == "run 1 of job tick in namespace shop is succeeded"
    assert shown[-1] == "- Nothing to do."
    assert "Also:" not in shown


def test_names_from_outside_rule_no_terminal_and_no_shell():
    shown = lines(document(one("a\x1b[31m b", "c\nd"), job_name="t\x07ick"))
    assert all(line.isprintable() for line in shown)

    made = answer(Blocker.JOB_PAUSED, "paused", job="x; rm -rf $HOME", namespace="shop")
    assert "`noonmark job resume 'x; rm -rf $HOME' --namespace shop`" in made.remedy
