"""How the texts of options are read."""

import pytest
from tests.support.cli import call

from noonmark.cli.terminal.options import as_uuid
from noonmark.cli.terminal.problems import ExitCode


def test_an_id_is_told_from_a_name():
    assert str(as_uuid("019d6f2e-0000-7000-8000-000000000001")) == "019d6f2e-0000-7000-8000-000000000001"
    assert as_uuid("send-invoice") is None
    assert as_uuid("x" * 36) is None


@pytest.mark.parametrize("given", ["send-invoice", "01a227be", "01a227be-5de9-7001-9066-803d29ef2a9"])
def test_a_report_needs_the_whole_id_of_its_run(tmp_path, given):
    token = tmp_path / "token"
    token.write_text("secret")
    told = call("run", "complete", given, "--token-file", str(token), code=ExitCode.USAGE).stderr
    assert f"run '{given}' is not an id; give all 36 characters" in told
    assert "looks up no ids" in told


@pytest.mark.parametrize("given", ["2h", "30s ago", "2026-06-01", "2026-06-01T09:00:00Z"])
def test_a_time_in_place_of_a_cursor_is_told_from_one(tmp_path, monkeypatch, given):
    monkeypatch.chdir(tmp_path)
    told = call("run", "list", "--after", given, code=ExitCode.USAGE).stderr
    assert "takes the `next_cursor` of the previous page" in told
    assert "--since" in told
