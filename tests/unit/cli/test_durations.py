"""Options that are durations: one set of forms for all commands."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.cli import call, command_of

from noonmark.cli.main import app

TIMEOUTS = {
    "submit": ("submit", "jobs.json"),
    "job trigger": ("job", "trigger", "tick"),
    "job create": ("job", "create", "--type", "http"),
    "run retry": ("run", "retry", "019d6f2e"),
    "run cancel": ("run", "cancel", "019d6f2e"),
    "import crontab": ("import", "crontab", "crontab"),
    "dev up": ("dev", "up"),
}
BOUNDS = {"submit": (1, "1h"), "job trigger": (1, "7d"), "run retry": (1, "7d"), "import crontab": (1, "1d")}


def options(command: Any, *path: str) -> Iterator[tuple[str, Any]]:
    """Every option of every command, as `job trigger --timeout`."""
    for param in command.params:
        if param.param_type_name == "option":
            yield f"{' '.join(path)} {param.opts[0]}", param
    for name, child in getattr(command, "commands", {}).items():
        yield from options(child, *path, name)


OPTIONS = dict(options(command_of(app)))


def shown(*words: str) -> str:
    """What a wrong usage prints, without the frame around it."""
    return " ".join(call(*words, code=2).stderr.replace("│", " ").split())


def test_every_option_with_a_fraction_is_a_duration_or_a_share():
    plain = [
        name
        for name, param in OPTIONS.items()
        if param.type_descriptor.annotation is float and param.type_descriptor.parameter_info.parser is None
    ]
    assert plain == ["verify --rate"]


@pytest.mark.parametrize("command", TIMEOUTS)
@pytest.mark.parametrize("given", ["300", "5m", "PT5M", " 5m "])
def test_a_duration_has_the_forms_of_documents(command, given):
    parser = OPTIONS[f"{command} --timeout"].type_descriptor.parameter_info.parser
    assert parser(given) == 300.0


@pytest.mark.parametrize(("command", "words"), TIMEOUTS.items())
@pytest.mark.parametrize("given", ["soon", "5 m", "-5", "inf", "1e3"])
def test_anything_else_is_refused_with_the_option_and_the_forms(tmp_path, monkeypatch, command, words, given):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERMINAL_WIDTH", "200")
    told = shown(*words, f"--timeout={given}")
    assert f"Invalid value for '--timeout': '{given}' is not a duration" in told
    assert "write a duration such as 15m, 1h30m or PT15M, or a number of seconds" in told


@pytest.mark.parametrize(("command", "bounds"), BOUNDS.items())
def test_a_duration_keeps_its_bounds_and_they_are_told_in_its_own_unit(
    tmp_path, monkeypatch, command, bounds
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERMINAL_WIDTH", "200")
    least, most = bounds
    told = shown(*TIMEOUTS[command], "--timeout=0s")
    assert f"'--timeout': '0s' is too short; write a duration of at least {least}s" in told
    told = shown(*TIMEOUTS[command], "--timeout=8d")
    assert f"'--timeout': '8d' is too long; write a duration of at most {most}" in told


def test_a_cancel_need_not_wait_and_may_wait_for_any_time():
    parser = OPTIONS["run cancel --timeout"].type_descriptor.parameter_info.parser
    assert (parser("0"), parser("30d")) == (0.0, 2_592_000.0)


def test_the_period_of_a_check_is_a_duration_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERMINAL_WIDTH", "200")
    assert "Invalid value for '--period': 'daily' is not a duration" in shown("verify", "--period", "daily")


def test_the_help_names_the_forms_and_the_longest_duration():
    assert OPTIONS["submit --timeout"].help == (
        "Maximum wait, with --wait: 5m, PT5M or 300 (seconds), up to 1h."
    )
