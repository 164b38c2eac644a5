"""How tests call `noonmark schedule`."""

import json

from tests.support.cli import CliRunner

from noonmark.cli.main import app

CRON = ["--cron", "30 2 * * *", "--zone", "America/New_York"]
MARCH = ["--after", "2026-03-06T12:00:00Z"]


def run(*words: str, stdin: str | None = None) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["schedule", *words], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout


def fires(*words: str) -> dict:
    code, out = run("next", *words, "--json")
    assert code == 0, out
    return json.loads(out)


def error(*words: str, command: str = "next") -> dict:
    code, out = run(command, *words, "--json")
    assert code == 2, out
    document = json.loads(out)
    assert list(document) == ["error"]
    return document["error"]


def instants(*words: str) -> list[str]:
    return [fire["at"] for fire in fires(*words)["fires"]]
