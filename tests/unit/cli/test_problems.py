"""Known problems end in a sentence and an exit code."""

import pytest

from noonmark.cli.terminal.problems import (
    CliError,
    ExitCode,
    broker_away,
    cannot_write,
    database_away,
    explain,
)
from noonmark.client import ApiError, NoAnswerError, WaitTimeoutError
from noonmark.settings import SettingsError


def test_a_database_that_is_away_is_named_with_what_to_do():
    problem = database_away("postgresql://app:s3cret@db:5433/jobs", "connection refused\nmore")
    assert problem.code is ExitCode.UNREACHABLE
    assert str(problem) == (
        "cannot connect to the database jobs at db:5433: connection refused; check NOONMARK_DATABASE_URL,"
        " or run `noonmark dev up` (run commands in the folder where it was started)"
    )


def test_a_broker_that_is_away_is_named_with_what_to_do():
    problem = broker_away("kafka:9092", "no broker answered")
    assert problem.code is ExitCode.UNREACHABLE
    assert "kafka:9092" in str(problem)
    assert "noonmark dev up" in str(problem)


def test_a_file_in_a_folder_that_does_not_exist_is_told_with_how_to_create_it(tmp_path):
    path = tmp_path / "my jobs" / "jobs.yaml"
    with pytest.raises(FileNotFoundError) as caught:
        path.write_text("")
    assert str(cannot_write(path, caught.value)) == (
        f"cannot write {path}: folder {path.parent} does not exist; create it with `mkdir -p '{path.parent}'`"
    )


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


def refused(status, **problem):
    return explain(ApiError.of(status, "", {"title": "Not taken", **problem}, "r-1"))


def test_what_the_api_refuses_is_told_field_by_field():
    errors = [
        {"pointer": "/schedule/cron", "message": "is not a cron expression", "expected": "five fields"},
        {"pointer": "", "message": "is empty", "expected": ""},
    ]
    problem = refused(422, detail="2 problems, each in `errors`", errors=errors)
    assert problem.code is ExitCode.PROBLEM
    assert str(problem).splitlines() == [
        "Not taken: 2 problems, each in `errors`",
        "  /schedule/cron: is not a cron expression; expected five fields",
        "  document: is empty",
    ]


def test_one_problem_is_one_line():
    problem = refused(
        403, detail="jobs:write needs the role editor", errors=[{"pointer": "", "message": "x"}]
    )
    assert str(problem) == "Not taken: jobs:write needs the role editor"


def test_a_conflict_is_about_an_object_and_not_about_a_document():
    assert str(refused(409, detail="document: job a is cancelled")) == "Not taken: job a is cancelled"


def test_an_api_that_cannot_serve_is_unreachable_and_names_the_request():
    problem = refused(503, detail="the database does not answer")
    assert (problem.code, "request r-1" in str(problem)) == (ExitCode.UNREACHABLE, True)
    assert refused(500).code is ExitCode.PROBLEM


def test_an_api_that_gives_no_answer_is_unreachable():
    problem = explain(NoAnswerError("noonmark at https://n.example.com cannot be reached"))
    assert problem.code is ExitCode.UNREACHABLE
    assert "`noonmark context show`" in str(problem)


def test_what_was_waited_for_and_did_not_come_is_a_problem():
    assert explain(WaitTimeoutError("run 1 is still queued after 5 s")).code is ExitCode.PROBLEM
