"""Settings on display: secrets stay secret."""

import json
import os

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from noonmark.cli.config import masked
from noonmark.cli.main import app


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://app:s3cret@db:5433/jobs", "postgresql://app:********@db:5433/jobs"),
        ("postgresql://app:p@ss:word@db/jobs", "postgresql://app:********@db/jobs"),
        ("postgresql://db/jobs?password=s3cret", "postgresql://db/jobs?…"),
        ("postgresql://app@db/jobs", "postgresql://app@db/jobs"),
    ],
)
def test_of_a_url_everything_but_the_password_is_shown(url, shown):
    assert masked(SecretStr(url)) == shown


def test_of_a_secret_only_whether_it_is_set_is_shown():
    assert masked(SecretStr("hush")) == "********"
    assert masked(SecretStr("")) == ""


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """No variable of ours, and no development stack in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("NOONMARK_"):
            monkeypatch.delenv(name)
    return monkeypatch


def test_config_check_shows_where_each_value_comes_from(bare):
    bare.setenv("NOONMARK_POOL", "reports")
    result = CliRunner().invoke(app, ["config", "check", "--json"])
    assert result.exit_code == 0
    shown = {row["variable"]: row for row in json.loads(result.stdout)["settings"]}
    assert (shown["NOONMARK_POOL"]["value"], shown["NOONMARK_POOL"]["from"]) == ("reports", "environment")
    assert shown["NOONMARK_WORKER_SLOTS"]["from"] == "default"


def test_config_check_shows_the_settings_beside_an_unknown_variable(bare):
    bare.setenv("NOONMARK_DATABSE_URL", "postgresql://db/jobs")
    result = CliRunner().invoke(app, ["config", "check", "--json"])
    assert result.exit_code == 2
    shown = json.loads(result.stdout)
    assert shown["problems"] == ["NOONMARK_DATABSE_URL is not a setting; did you mean NOONMARK_DATABASE_URL?"]
    assert len(shown["settings"]) > 20


def test_config_check_says_which_value_is_wrong(bare):
    bare.setenv("NOONMARK_WORKER_SLOTS", "many")
    result = CliRunner().invoke(app, ["config", "check"])
    assert result.exit_code == 2
    assert "NOONMARK_WORKER_SLOTS" in result.stderr
