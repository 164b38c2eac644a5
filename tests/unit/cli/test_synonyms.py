"""Names of other tools: options and values are taken with a note, commands are answered with ours."""

import pytest
from tests.support.cli import call, command_of

from noonmark.cli.main import app
from noonmark.cli.terminal.synonyms import with_our_names


@pytest.mark.parametrize(
    ("given", "taken", "note"),
    [
        ("schedule next --schedule @daily", "schedule next --cron @daily", "--schedule is --cron here"),
        (
            "schedule next --cron @daily --tz UTC",
            "schedule next --cron @daily --zone UTC",
            "--tz is --zone here",
        ),
        ("job create --cron=@daily", "job create --schedule=@daily", "--cron is --schedule here"),
        ("job create --timezone UTC", "job create --zone UTC", "--timezone is --zone here"),
        ("run list --state failed", "run list --state dead", "--state failed is --state dead here"),
        ("run list --state=FAILED", "run list --state=dead", "--state FAILED is --state dead here"),
        ("dlq redrive --limit 5", "dlq redrive --max 5", "--limit is --max here"),
        ("--context x run list --count 5", "--context x run list --limit 5", "--count is --limit here"),
        ("job create --at tomorrow", "job create --run-at tomorrow", "--at is --run-at here"),
        # Values of options that can be repeated may stand between commas.
        (
            "run list --state queued,failed",
            "run list --state queued --state dead",
            "--state failed is --state dead here",
        ),
        ("run list --state=queued,running", "run list --state=queued --state=running", ""),
        ("job list --lane high,low,", "job list --lane high --lane low", ""),
        ("backfill list --state running,completed", "backfill list --state running --state completed", ""),
        ("run list --reason a,b", "run list --reason a,b", ""),
        ("job create --type http,grpc", "job create --type http,grpc", ""),
        # Ours are left as they are, and so are texts.
        ("schedule next --max-runs 3 --count 2", "schedule next --max-runs 3 --count 2", ""),
        ("run cancel --before today", "run cancel --before today", ""),
        ("job pause x --reason --tz", "job pause x --reason --tz", ""),
        ("job pause -- --tz", "job pause -- --tz", ""),
        ("job list --state failed", "job list --state failed", ""),
        ("apply --tz x", "apply --tz x", ""),
        ("job", "job", ""),
    ],
)
def test_options_and_values_of_others_are_taken_with_a_note(capsys, given, taken, note):
    assert with_our_names(command_of(app), given.split()) == taken.split()
    assert capsys.readouterr().err == (f"note: {note}\n" if note else "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("apply", "FILE"), "`noonmark job apply`"),
        (("logs", "x"), "`noonmark run logs`"),
        (("status",), "`noonmark dev status`"),
        (("pause", "x"), "`noonmark job pause` or `noonmark namespace pause`"),
        (("redrve",), "`noonmark dead redrive`"),
        (("jobs", "list"), "'job'"),
        (("run", "list", "--state", "succeded"), "Did you mean 'succeeded'?"),
        (("run", "list", "--state", "queued,succeded"), "Did you mean 'succeeded'?"),
        (("run", "list", "--state", ","), "',' is not one of"),
        (("job", "create", "tick"), "unexpected argument 'tick'; write `noonmark job create --name tick`"),
        (("job", "apply", "a.json"), "Write `noonmark job apply -f FILE`."),
        (
            ("job", "apply", "-f", "a.json", "b.json"),
            "unexpected argument 'b.json'; write `noonmark job apply -f b.json`",
        ),
        (
            ("job", "export", "out"),
            "write `noonmark job export --folder out` for files, or `noonmark job export --name out`",
        ),
        (("run", "list", "tick"), "write `noonmark run list --job tick`"),
        (("job", "show", "a", "b"), "unexpected argument 'b'; `noonmark job show` takes ID|NAME and options"),
        (
            ("job", "create", "--name", "a", "--timeout", "5", "m"),
            "unexpected argument 'm'; write `--timeout 5m`, without a space",
        ),
        (("run", "list", "--since=15", "d"), "unexpected argument 'd'; write `--since 15d`, without a space"),
        (
            ("job", "create", "--name", "a", "b"),
            "unexpected argument 'b'; `noonmark job create` takes only options",
        ),
        (("workers", "all"), "unexpected argument 'all'; `noonmark workers` takes only options"),
    ],
)
def test_what_does_not_exist_is_answered_with_what_is_meant(monkeypatch, words, told):
    monkeypatch.setenv("TERMINAL_WIDTH", "200")
    shown = " ".join(call(*words, code=2).stderr.replace("│", " ").split())
    assert told in shown


def test_a_synonym_works_to_the_end():
    done = call(
        "schedule", "next", "--schedule", "0 9 * * *", "--timezone", "Asia/Tokyo", "--limit", "1", "--json"
    )
    assert "T09:00:00+09:00" in done.stdout


@pytest.mark.parametrize("verb", ["dead redrive", "dead discard", "run cancel"])
def test_the_name_of_a_job_in_place_of_a_run_is_answered_with_the_option_for_jobs(
    tmp_path, monkeypatch, verb
):
    monkeypatch.chdir(tmp_path)
    told = call(*verb.split(), "send invoice", "--yes", code=2).stderr
    assert f"`noonmark {verb} --job 'send invoice'` selects the runs of a job" in told
