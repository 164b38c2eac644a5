"""Invisible characters, and those that turn text around, are shown as escapes."""

import json

import pytest

from noonmark.cli.terminal.output import as_json_line, printable, show_json

NAMES = [
    "pay\u202eroll",
    "pay\u200broll",
    "\ufeffpayroll",
    "\u2067payroll\u2069",
    "pay\U000e0041roll",
    "pay\u3164",
    "pay\u2028roll",
]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_a_name_with_them_does_not_look_like_another(capsys, name):
    shown = printable(name)
    assert shown.isprintable()
    assert json.loads(f'"{shown}"') == name != shown
    show_json({"name": name})
    told = capsys.readouterr().out
    assert json.loads(told) == {"name": name} == json.loads(as_json_line({"name": name}))
    assert told.strip().isascii()


def test_other_text_stays_and_control_characters_are_spaces():
    assert printable("Müller 日本 \U0001f600") == "Müller 日本 \U0001f600"
    assert printable("a\x1b[2Jb\nc") == "a [2Jb c"
