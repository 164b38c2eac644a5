"""Options whose value is JSON, or a file with JSON."""

import io
import sys

import pytest
from tests.support.cli import call

from noonmark.cli.terminal.json_values import MOST_BYTES, read_json_option
from noonmark.cli.terminal.problems import CliError, ExitCode


def test_json_is_taken_in_place_and_from_a_file_and_from_standard_input(tmp_path, monkeypatch):
    file = tmp_path / "body.json"
    file.write_bytes(b'\xef\xbb\xbf{"user": 7}')
    assert read_json_option('{"user": 7}', "--payload") == {"user": 7}
    assert read_json_option(f"@{file}", "--payload") == {"user": 7}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"[1]")))
    assert read_json_option("@-", "--payload") == [1]
    assert read_json_option(None, "--payload") is None


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("{user}", "--payload is not JSON: "),
        ("@missing.json", "cannot read --payload missing.json: it does not exist"),
        ("@", "--payload @ names no file; write @FILE, or @- for stdin"),
        ("@broken.json", "--payload broken.json is not JSON: "),
        ("@large.json", f"--payload large.json has more than {MOST_BYTES} bytes"),
        ("@latin.json", "cannot read --payload latin.json: it is not UTF-8 text"),
        ("broken.json", "to read the file, write --payload @broken.json"),
    ],
)
def test_what_cannot_be_read_is_told_with_the_option_and_what_to_write(tmp_path, monkeypatch, given, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "large.json").write_text(" " * MOST_BYTES + "1")
    (tmp_path / "latin.json").write_bytes(b'"\xe9"')
    with pytest.raises(CliError) as caught:
        read_json_option(given, "--payload")
    assert told in str(caught.value)
    assert caught.value.code is ExitCode.USAGE


@pytest.mark.parametrize(
    "command",
    [
        ("job", "create", "--type", "http", "--payload", "@missing.json"),
        ("job", "trigger", "tick", "--payload", "@missing.json"),
        ("run", "complete", "019d6f2e-0000-7000-8000-000000000001", "--token-file", "token", "--result", "@missing.json"),
    ],
    ids=lambda words: " ".join(words[:2]),
)  # fmt: skip
def test_every_option_with_json_reads_files(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token").write_text("t")
    told = call(*command, code=ExitCode.USAGE).stderr
    assert f"cannot read {command[-2]} missing.json: it does not exist" in told


@pytest.mark.parametrize(
    "command",
    [
        ("job", "create", "-f", "-", "--payload", "@-"),
        ("run", "complete", "019d6f2e-0000-7000-8000-000000000001", "--token-file", "-", "--result", "@-"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_two_options_cannot_read_standard_input(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    assert "cannot both read standard input" in call(*command, code=ExitCode.USAGE).stderr
