"""Settings on display: secrets stay secret."""

import json
import os
import re

import pytest
from pydantic import SecretStr
from tests.support.cli import CliRunner

from noonmark.cli.connections.context import load_settings
from noonmark.cli.main import app
from noonmark.cli.operations.config import masked
from noonmark.settings import SettingsError


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


def test_config_check_reads_the_files_and_folders_that_settings_name(bare, tmp_path):
    (tmp_path / "ca.pem").write_text("")
    (tmp_path / "secrets").mkdir()
    bare.setenv("NOONMARK_KAFKA_SSL_CA_LOCATION", str(tmp_path / "ca.pem"))
    bare.setenv("NOONMARK_KAFKA_SSL_KEY_LOCATION", str(tmp_path / "key.pem"))
    bare.setenv("NOONMARK_SECRETS_DIR", str(tmp_path / "secrets"))
    result = CliRunner().invoke(app, ["config", "check", "--json"])
    assert result.exit_code == 2
    assert json.loads(result.stdout)["problems"] == [
        f"NOONMARK_KAFKA_SSL_KEY_LOCATION '{tmp_path}/key.pem' cannot be read: it does not exist"
    ]


def test_config_check_shows_the_settings_beside_an_unknown_variable(bare):
    bare.setenv("NOONMARK_DATABSE_URL", "postgresql://db/jobs")
    result = CliRunner().invoke(app, ["config", "check", "--json"])
    assert result.exit_code == 2
    shown = json.loads(result.stdout)
    assert shown["problems"] == ["NOONMARK_DATABSE_URL is not a setting; did you mean NOONMARK_DATABASE_URL?"]
    assert len(shown["settings"]) > 20


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("DATABASE_URL", "foo", "NOONMARK_DATABASE_URL is not a Postgres URL: use postgresql://"),
        ("DATABASE_URL", "mysql://db/jobs", "NOONMARK_DATABASE_URL is not a Postgres URL"),
        (
            "DATABASE_URL",
            "postgresql://u:s3%zz@db/jobs",
            "NOONMARK_DATABASE_URL cannot be read as a Postgres URL",
        ),
        ("DATABASE_URL", "postgresql://u:s3cret@db:x/jobs", "port that is not a number from 1 to 65535"),
        ("KAFKA_BOOTSTRAP", "", "NOONMARK_KAFKA_BOOTSTRAP: a broker is missing: use host:port"),
        ("KAFKA_BOOTSTRAP", "a:9092,b", "'b' is not a broker: use host:port"),
        ("KAFKA_BOOTSTRAP", "a:99999", "'a:99999' is not a broker"),
        ("WORKER_SLOTS", "0", "NOONMARK_WORKER_SLOTS '0' is not allowed: use a whole number from 1 to 20000"),
        ("LEASE_SECONDS", "1", "NOONMARK_LEASE_SECONDS '1' is not allowed: use a number from 2 to 3600"),
        (
            "LOG_LEVEL",
            "loud",
            "NOONMARK_LOG_LEVEL 'loud' is not allowed: use one of debug, info, warning, error",
        ),
        ("HTTP_ALLOW_NETWORKS", "10.0.0.1/8", "use networks such as 10.20.0.0/16"),
        ("BEAT_SECONDS", "14", "a lease must last at least three beats"),
    ],
)
def test_a_wrong_setting_is_a_sentence_for_every_command(bare, variable, value, told):
    bare.setenv(f"NOONMARK_{variable}", value)
    checked = CliRunner().invoke(app, ["config", "check"])
    assert checked.exit_code == 2
    assert told in checked.stderr
    assert re.fullmatch("[0-9]+ problems? found", checked.stderr.splitlines()[-1])
    assert "s3" not in checked.stderr
    with pytest.raises(SettingsError, match=re.escape(told)):
        load_settings()


@pytest.mark.parametrize(
    "url",
    ["postgres://db/jobs", "postgresql:///jobs?host=/run/pg", "postgresql://u:p%40ss@a:5432,[::1]/jobs"],
)
def test_urls_that_libpq_reads_are_taken(bare, url):
    bare.setenv("NOONMARK_DATABASE_URL", url)
    assert load_settings().dsn == url


def test_brokers_are_taken_with_spaces_between_them(bare):
    bare.setenv("NOONMARK_KAFKA_BOOTSTRAP", "a:9092, b.c-d:9093 ,[::1]:9094")
    assert load_settings().kafka_bootstrap == "a:9092,b.c-d:9093,[::1]:9094"


def test_a_wrong_option_is_named_and_not_its_setting(bare):
    bare.setenv("NOONMARK_WORKER_SLOTS", "8")
    with pytest.raises(SettingsError, match="--slots 0 is not allowed: use a whole number from 1 to 20000"):
        load_settings(worker_slots=0)


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("NOONMARK_BOUND_TOPICS", "acme", "'acme' has no namespace: use topic=namespace"),
        ("NOONMARK_BOUND_TOPICS", "a.b=acme,a.b=lab", "topic 'a.b' is bound to 'acme' and to 'lab'"),
        ("NOONMARK_PUBLISHER_KEY", "nmk_abcdefghijkl_s3cret", "an API key, which cannot sign"),
        ("NOONMARK_PUBLISHER_KEY", "nmp_s3cret", "use nmp_<key id>_<64 hex digits>"),
    ],
)
def test_what_publishers_are_let_in_by_is_checked_and_never_shown(bare, monkeypatch, variable, value, told):
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError) as refused:
        load_settings()
    assert told in str(refused.value)
    assert "s3cret" not in str(refused.value)


def test_the_end_of_a_line_is_no_part_of_a_setting(bare):
    """A Secret of Kubernetes that was made from a file has one."""
    bare.setenv("NOONMARK_DATABASE_URL", "postgresql://app:s3cret@db/jobs\n")
    bare.setenv("NOONMARK_KAFKA_SASL_PASSWORD", " p\r\n")
    settings = load_settings()
    assert settings.dsn == "postgresql://app:s3cret@db/jobs"
    assert settings.kafka_sasl_password.get_secret_value() == " p"


def test_config_check_ends_with_a_verdict(bare):
    checked = CliRunner().invoke(app, ["config", "check"])
    assert (checked.exit_code, checked.stdout.splitlines()[-1], checked.stderr) == (
        0,
        "no problems found",
        "",
    )


def test_config_check_says_which_value_is_wrong(bare):
    bare.setenv("NOONMARK_WORKER_SLOTS", "many")
    result = CliRunner().invoke(app, ["config", "check"])
    assert result.exit_code == 2
    assert "NOONMARK_WORKER_SLOTS" in result.stderr


def test_config_check_says_whose_settings_it_shows(bare):
    result = CliRunner().invoke(app, ["config", "check"])
    assert "these are the settings of this shell; running services have those of theirs" in result.output
    bare.setattr("noonmark.cli.operations.config.stack_addresses", lambda: {"kafka_bootstrap": "localhost:1"})
    assert "those of `noonmark dev up`" in CliRunner().invoke(app, ["config", "check"]).output
