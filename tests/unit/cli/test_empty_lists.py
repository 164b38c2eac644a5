"""A listing without rows says so."""

import pytest

from noonmark.cli.connections.api_pages import show_page
from noonmark.cli.terminal import output
from noonmark.cli.terminal.options import Output


@pytest.mark.parametrize(
    ("terminal", "out", "err"), [(True, "no jobs found\n", ""), (False, "ID\n", "no jobs found\n")]
)
def test_nothing_is_said_and_is_not_a_bare_header(capsys, monkeypatch, terminal, out, err):
    monkeypatch.setattr(output, "is_terminal", lambda: terminal)
    show_page([], None, [output.field("id")], output=Output.TABLE, as_json=False, empty="no jobs found")
    assert capsys.readouterr() == (out, err)


def test_json_is_an_empty_list(capsys):
    show_page([], None, [output.field("id")], output=Output.TABLE, as_json=True, empty="no jobs found")
    assert capsys.readouterr() == ('{"items": [], "next_cursor": null}\n', "")
