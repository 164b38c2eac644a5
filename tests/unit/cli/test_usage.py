"""How commands are used, and what is refused before anything is done."""

import re

import pytest
import typer
from tests.support.cli import CliRunner, command_of

from noonmark.cli.main import app
from noonmark.cli.operations.dev import check_handlers
from noonmark.cli.runs.retry import finish
from noonmark.cli.terminal.problems import CliError, ExitCode


@pytest.mark.parametrize(
    ("words", "usage"),
    [("limit set", "NAME"), ("context show", "[NAME]"), ("job show", "ID|NAME"), ("run cancel", "[RUN]...")],
)
def test_usage_lines_name_arguments_as_the_documentation_does(words, usage):
    shown = CliRunner().invoke(app, [*words.split(), "--help"]).output
    assert f"noonmark {words} [OPTIONS] {usage} " in shown.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("job trigger tick --timeout 1m", "--timeout has no effect without --wait"),
        ("run retry 0197a2b4 --timeout=1m", "--timeout has no effect without --wait"),
        ("import crontab - --set x", "--set has no effect without --apply"),
    ],
)
def test_an_option_without_effect_is_refused(words, option):
    result = CliRunner().invoke(app, words.split())
    assert isinstance(result.exception, CliError)
    assert result.exception.code == ExitCode.USAGE
    assert option in str(result.exception)


def test_an_unknown_command_of_a_group_is_answered_with_those_that_it_has():
    def told(*words):
        return re.sub(r"[\s│]+", " ", CliRunner().invoke(app, words).output)

    shown = told("limit", "get", "one")
    assert (
        "No such command 'get'. Did you mean 'show'? `noonmark limit` has: delete, list, set, show." in shown
    )
    assert "Did you mean 'delete'?" in told("limit", "rm", "one")
    assert "Did you mean 'list'" in told("limit", "lst")
    assert "Did you mean" not in told("limit", "unpause", "one")


def test_a_skipped_run_is_not_followed_and_sets_the_exit_code(capsys):
    with pytest.raises(typer.Exit) as ended:
        finish("1", {"state": "skipped"}, None, as_json=False, done="is skipped")
    assert ended.value.exit_code == ExitCode.PROBLEM
    assert capsys.readouterr().out == "run 1 is skipped\n"
    finish("1", {"state": "queued"}, None, as_json=False, done="is queued")
    assert "run logs -f" in capsys.readouterr().out


def test_a_workflow_run_is_followed_by_its_tasks(capsys):
    finish("1", {"state": "queued"}, None, as_json=False, done="is queued", pool="$workflow")
    assert capsys.readouterr().out == "run 1 is queued; `noonmark run tasks 1` lists its tasks\n"


def test_a_wrong_day_is_named_with_its_option():
    result = CliRunner().invoke(app, ["calendar", "set", "x", "--date", "2026-13-01"])
    assert str(result.exception).startswith("--date is 2026-13-01")


def test_handlers_are_loaded_before_a_stack_starts(tmp_path):
    (tmp_path / "fine.py").write_text(
        "from noonmark.handlers import handler\n@handler('a.b')\ndef f(ctx): ...\n"
    )
    check_handlers(["fine"], str(tmp_path))
    with pytest.raises(CliError, match="module nowhere_at_all not found") as refused:
        check_handlers(["nowhere_at_all"], str(tmp_path))
    assert refused.value.code == ExitCode.USAGE


def test_what_can_be_listed_can_be_shown():
    """A row of the listing is the whole pool; `noonmark pool keys` shows its keys."""
    groups = {
        group.name: set(group.commands)
        for group in command_of(app).commands.values()
        if hasattr(group, "commands")
    }
    without = {name for name, commands in groups.items() if "list" in commands and "show" not in commands}
    assert without == {"pool"}
    assert "keys" in groups["pool"]
