"""Known problems end in a sentence and an exit code."""

import pytest

from noonmark.cli.problems import CliError, ExitCode, broker_away, database_address, database_away, explain
from noonmark.settings import SettingsError


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://app:s3cret@db.internal:5433/jobs", "jobs at db.internal:5433"),
        ("postgresql://app:p@ss@db/jobs", "jobs at db"),
        ("postgresql:///jobs?host=/run/postgresql", "jobs at (local socket)"),
        ("postgresql://a,b:5433/jobs", "jobs at a,b:5433"),
        ("host=db password=s3cret", "of NOONMARK_DATABASE_URL"),
    ],
)
def test_a_database_is_named_without_its_password(dsn, shown):
    assert database_address(dsn) == shown


def test_a_database_that_is_away_is_named_with_what_to_do():
    problem = database_away("postgresql://app:s3cret@db:5433/jobs", "connection refused\nmore")
    assert problem.code is ExitCode.UNREACHABLE
    assert str(problem) == (
        "the database jobs at db:5433 cannot be used (connection refused); is it up?"
        " `noonmark dev up` starts one (commands find it in the folder where it was started, and nowhere else),"
        " NOONMARK_DATABASE_URL names another"
    )


def test_a_broker_that_is_away_is_named_with_what_to_do():
    problem = broker_away("kafka:9092", "no broker answered")
    assert problem.code is ExitCode.UNREACHABLE
    assert "kafka:9092" in str(problem)
    assert "noonmark dev up" in str(problem)


def test_wrong_settings_are_wrong_usage():
    problem = explain(SettingsError("NOONMARK_POOL: bad"))
    assert problem is not None
    assert problem.code is ExitCode.USAGE
    assert "noonmark config check" in str(problem)


def test_a_known_problem_stays_as_it_is():
    known = CliError("a sentence")
    assert explain(known) is known


def test_what_nobody_foresaw_is_not_dressed_up():
    assert explain(ZeroDivisionError("oops")) is None
