"""How the texts of options are read."""

import pytest
from tests.support.cli import call

from noonmark.cli.terminal.options import as_uuid, read_uuid
from noonmark.cli.terminal.problems import CliError, ExitCode


def test_an_id_is_told_from_a_name():
    assert str(as_uuid("019d6f2e-0000-7000-8000-000000000001")) == "019d6f2e-0000-7000-8000-000000000001"
    assert as_uuid("send-invoice") is None
    assert as_uuid("x" * 36) is None


def test_what_must_be_an_id_is_refused_otherwise():
    with pytest.raises(CliError, match="run 'send-invoice' is not an id"):
        read_uuid("send-invoice", "run")


@pytest.mark.parametrize("given", ["2h", "30s ago", "2026-06-01", "2026-06-01T09:00:00Z"])
def test_a_time_in_place_of_a_cursor_is_told_from_one(tmp_path, monkeypatch, given):
    monkeypatch.chdir(tmp_path)
    told = call("run", "list", "--after", given, code=ExitCode.USAGE).stderr
    assert "takes the `next_cursor` of the previous page" in told
    assert "--since" in told
