"""The parts of the outbox that need no database: the setting, the check of documents, the statements."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from noonmark import outbox
from noonmark.cli.operations.config import masked
from noonmark.outbox.bindings import AppOutbox, parse_bindings
from noonmark.outbox.checking import checked
from noonmark.outbox.table import app_statement, named_statement
from noonmark.settings import Settings, SettingsError

URL = "postgresql://shop:p%40ss@db1,db2:5433/shop?options=-csearch_path%3Djobs&application_name=x"
JOB = {"type": "python", "handler": "mails.confirm", "payload": {"order": 7}}


def test_bindings_are_read_whatever_stands_in_the_url():
    assert parse_bindings(f" shop={URL}=billing\n crm=postgres://crm@db/crm=default ") == (
        AppOutbox("shop", "billing", URL),
        AppOutbox("crm", "default", "postgres://crm@db/crm"),
    )
    assert parse_bindings(" ") == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("shop", "binding 1 is not valid"),
        ("shop=mysql://u:hunter2@h/d=billing", "binding 1 is not valid"),
        ("Shop=postgresql://u:hunter2@h/d=billing", "the name of binding 1 is not valid"),
        ("shop=postgresql://u:hunter2@h/d", "binding 1 is not valid"),
        ("shop=postgresql://u:hunter2@h/d=Not-One", "binding shop has no namespace at its end"),
        ("a=postgresql://u:hunter2@h/d=x a=postgresql://u:hunter2@h/e=x", "two bindings are named a"),
        ("a=postgresql://u:hunter2@h:99999/d=x", "the URL of binding a has a port that is not a number"),
    ],
)
def test_a_setting_that_cannot_be_read_is_told_without_any_of_its_passwords(text, told, monkeypatch):
    monkeypatch.setenv("NOONMARK_APP_OUTBOXES", text)
    with pytest.raises(SettingsError, match=told) as caught:
        Settings.load()
    assert "NOONMARK_APP_OUTBOXES" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_the_setting_is_a_secret():
    (bound,) = parse_bindings(f"shop={URL}=billing")
    settings = Settings(app_outboxes=f"shop={URL}=billing")
    assert "p%40ss" not in f"{bound!r} {settings!r} {masked(settings.app_outboxes)}"


def test_a_document_is_stored_as_it_was_written():
    document, text = checked(
        {**JOB, "schedule": {"cron": "0 9 * * *", "calendars": {"exclude": ["ours"]}}, "name": "x"}
    )
    assert document["schedule"] == {"cron": "0 9 * * *", "calendars": {"exclude": ["ours"]}}
    assert '"calendars":{"exclude":["ours"]}' in text


@pytest.mark.parametrize(
    ("job", "pointers"),
    [
        ({"type": "python"}, ["/handler"]),
        ({**JOB, "schedule": "not a cron", "name": "x"}, ["/schedule"]),
        ({**JOB, "payload": "\0"}, ["/payload"]),
        ({**JOB, "payload": object()}, [""]),
        ({**JOB, "payload": datetime(2030, 1, 1, tzinfo=UTC), "pool": "No Pool"}, ["/pool"]),
    ],
)
def test_what_is_wrong_with_a_document_is_told_with_its_place(job, pointers):
    with pytest.raises(outbox.JobRefusedError) as caught:
        checked(job)
    assert [error.pointer for error in caught.value.errors] == pointers


def test_other_targets_are_refused_by_name():
    with pytest.raises(TypeError, match=r"object cannot take a job: give one of .*sqlalchemy's Session"):
        outbox.add(object(), JOB)

    class AsyncSession:
        __module__ = "sqlalchemy.ext.asyncio.session"

    with pytest.raises(TypeError, match="AsyncSession cannot take a job: use add_async"):
        outbox.add(AsyncSession(), JOB)


def test_each_statement_is_written_once_for_both_libraries():
    assert "%(document)s" in app_statement("add")
    assert ":document" in named_statement("add")
    assert "%(" not in named_statement("add")
    assert outbox.create_table_sql().count("if not exists") == 3


def test_importing_the_package_is_cheap():
    script = (
        "import sys, noonmark.outbox\n"
        "print([name for name in ('sqlalchemy', 'psycopg', 'pydantic') if name in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )
