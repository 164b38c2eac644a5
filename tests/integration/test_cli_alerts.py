"""`noonmark alert` on a real database, and on receivers that are there and that are not."""

from __future__ import annotations

import json

import psycopg
import pytest
from tests.support.receiver import Receiver

from noonmark.receiver import verify

pytestmark = pytest.mark.postgres

SECRET = "whsec_" + "A" * 43 + "="


@pytest.fixture
def raised(emptied_database: str) -> str:
    """An open alert that a webhook was told of; its id."""
    with psycopg.connect(emptied_database, autocommit=True) as db:
        found = db.execute(
            """with made as (
                   insert into alerts (fingerprint, kind, severity, namespace, summary, details, raised_at, seen_at)
                   values ('late:x', 'late', 'warning', 'billing', '3 instants not started', '{"count": 3, "kind": "script"}',
                           now(), now())
                   returning id
               ), told as (
                   insert into alert_deliveries (alert_id, change, channel, attempts, due_at, sent_at)
                   select id, 'raised', 'webhook', 1, 'infinity', now() from made
               )
               select id::text from made"""
        ).fetchone()
    assert found is not None
    return str(found[0])


def test_alerts_are_listed_and_shown(noonmark, raised):
    listed = noonmark("alert", "list")
    assert "3 instants not started" in listed
    assert raised in listed
    assert raised not in noonmark("alert", "list", "--state", "resolved")
    assert json.loads(noonmark("alert", "list", "--kind", "late", "--json"))["items"][0]["id"] == raised

    shown = noonmark("alert", "show", raised)
    fields = {line.split()[0]: line.split()[-1] for line in shown.split("deliveries")[0].splitlines() if line}
    assert (fields["kind"], fields["details.kind"], fields["count"]) == ("late", "script", "3")
    assert "webhook" in shown
    assert json.loads(noonmark("alert", "show", raised, "--json"))["deliveries"][0]["state"] == "sent"


def test_an_alert_that_no_channel_was_told_of_says_so(noonmark, raised, emptied_database):
    with psycopg.connect(emptied_database, autocommit=True) as db:
        db.execute("delete from alert_deliveries")
    assert "no deliveries" in noonmark("alert", "show", raised)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["list", "--state", "closed"], 2, "use one of open, resolved, all"),
        (["list", "--kind", "slow"], 2, "'slow' is not a kind; use one of dead, failing"),
        (["show", "x"], 2, "alert 'x' is not an id"),
        (["show", "0197a2b4-1111-7000-8000-000000000001"], 1, "does not exist; run `noonmark alert list`"),
        (["test"], 2, "set NOONMARK_ALERT_WEBHOOK_URL or NOONMARK_ALERTMANAGER_URL"),
    ],
)
def test_mistakes_are_told_with_what_to_do(noonmark, arguments, code, told):
    assert told in noonmark("alert", *arguments, code=code)


def test_channels_are_tried_and_each_says_what_came_back(noonmark, monkeypatch):
    hook, dead = Receiver(), Receiver()
    dead.close()
    monkeypatch.setenv("NOONMARK_ALERT_WEBHOOK_URL", hook.url)
    monkeypatch.setenv("NOONMARK_ALERT_WEBHOOK_SECRET", SECRET)
    assert "accepted" in noonmark("alert", "test")

    ((headers, body),) = hook.got
    assert verify(headers, body, [SECRET]).id == json.loads(body)["id"]
    assert json.loads(body)["data"]["summary"] == "A test of this channel: nothing is wrong."

    monkeypatch.setenv("NOONMARK_ALERTMANAGER_URL", dead.url)
    noonmark("alert", "test", code=1)
    hook.close()


def test_a_secret_that_cannot_sign_is_not_shown(noonmark, monkeypatch):
    monkeypatch.setenv("NOONMARK_ALERT_WEBHOOK_URL", "https://example.com/hook")
    monkeypatch.setenv("NOONMARK_ALERT_WEBHOOK_SECRET", "hunter2")

    told = noonmark("alert", "test", code=2)

    assert "NOONMARK_ALERT_WEBHOOK_SECRET" in told
    assert "hunter2" not in told
