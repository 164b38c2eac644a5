"""`noonmark admin …` and `noonmark audit`, over the database itself."""

import json
import re
from contextlib import closing

import psycopg
import pytest
from tests.support.cli import call

from noonmark.auth.authenticator import Authenticator
from noonmark.core.access.submission_signature import PublisherKey
from noonmark.settings import Settings


@pytest.fixture
def principal_of(emptied_database):
    with closing(Authenticator(emptied_database, Settings())) as door:
        yield lambda token: door.authenticate(f"Bearer {token}")


def test_the_first_key_is_made_once_and_shown_once(noonmark, principal_of, emptied_database):
    called = call("admin", "bootstrap")
    token = called.stdout.strip()

    assert principal_of(token).platform
    assert "shown only once" in called.stderr
    refused = noonmark("admin", "bootstrap", code=1)
    assert "--force" in refused
    assert "nmk_" not in refused
    forced = json.loads(noonmark("admin", "bootstrap", "--force", "--name", "spare", "--json"))
    assert principal_of(forced["token"]).name == "spare"
    with psycopg.connect(emptied_database) as db:
        rows = db.execute("select action, outcome, reason, object from audit_log order by id").fetchall()
        assert token.split("_")[2] not in str(
            db.execute("select to_jsonb(audit_log) from audit_log").fetchall()
        )
    assert rows == [
        ("key.create", "done", "bootstrap", f"key:{token.split('_')[1]}"),
        ("key.create", "done", "bootstrap, forced", f"key:{forced['key_id']}"),
    ]


def test_keys_are_made_listed_shown_and_revoked(noonmark, principal_of):
    called = call("admin", "key", "create", "ci", "--grant", "billing=editor", "--grant", "*=viewer",
                  "--scope", "jobs:read", "--rate", "60", "--expires-in", "90d")  # fmt: skip
    token = called.stdout.strip()
    key = token.split("_")[1]

    found = principal_of(token)
    assert {place: role.label for place, role in found.grants.items()} == {"billing": "editor", "*": "viewer"}
    assert (found.scopes, found.rate_per_minute) == ({"jobs:read"}, 60)
    assert "shown only once" in called.stderr
    # A key may be made before the first job of its namespace, but the name may be misspelt.
    assert "note: namespace 'billing' has no recurring job yet\n" in called.stderr
    (row,) = json.loads(noonmark("admin", "key", "list", "--json"))["items"]
    assert (row["key_id"], row["name"], row["state"]) == (key, "ci", "valid")
    listed = noonmark("admin", "key", "list", "-o", "wide")
    assert "*=viewer, billing=editor" in listed
    assert "jobs:read" in noonmark("admin", "key", "show", key)
    assert re.search(r" \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ", listed)
    assert token.split("_")[2] not in listed
    assert "all servers reject it" in noonmark("admin", "key", "revoke", key)
    assert json.loads(noonmark("admin", "key", "list", "--json")) == {"items": []}
    assert json.loads(noonmark("admin", "key", "list", "--ended", "--json"))["items"][0]["state"] == "revoked"
    assert "revoked already" in noonmark("admin", "key", "revoke", key, code=1)
    assert "no key" in noonmark("admin", "key", "show", "a" * 12, code=1)


def test_a_key_that_signs_comes_with_what_it_signs_with(noonmark):
    made = json.loads(
        noonmark("admin", "key", "create", "orders", "--grant", "a=editor", "--signs", "--json")
    )
    assert PublisherKey.parse(made["signing_key"]).key_id == made["key_id"]

    token, signing = noonmark("admin", "key", "create", "x", "--grant", "a=editor", "--signs").split()
    assert PublisherKey.parse(signing).key_id == token.split("_")[1]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--grant", "billing"], "NAMESPACE=ROLE"),
        (["--grant", "billing=owner"], "viewer, operator, editor, admin"),
        (["--grant", "a=viewer", "--grant", "a=admin"], "twice"),
        (["--grant", "a=viewer", "--expires-in", "soon"], "12h, 90d"),
        (["--grant", "a=viewer", "--expires-in", "0d"], "12h, 90d"),
        (["--grant", "a=viewer", "--expires-in", "90"], "has no unit; write 90d for days"),
    ],
)
def test_options_that_mean_nothing_are_wrong_usage(noonmark, options, told):
    assert told in noonmark("admin", "key", "create", "x", *options, code=2)


@pytest.mark.parametrize("act", ["show", "revoke"])
def test_a_whole_key_in_place_of_its_id_is_refused_and_not_repeated(act):
    told = call("admin", "key", act, "nmk_abcdefghijkl_" + "s" * 43, code=2)
    assert "must be a key id" in told.stderr
    assert "sss" not in told.stdout + told.stderr


def test_what_the_api_refuses_is_told_as_it_says_it(noonmark):
    assert "has no permissions" in noonmark("admin", "key", "create", "x", code=1)


def test_the_audit_log_is_listed_by_filter(noonmark):
    noonmark("admin", "key", "create", "one", "--grant", "billing=viewer")
    noonmark("admin", "key", "create", "two", "--grant", "other=viewer")
    noonmark("admin", "key", "create", "three", "--platform", "--grant", "a=viewer", code=1)

    items = json.loads(noonmark("audit", "--json"))["items"]
    assert [(item["action"], item["namespace"], item["outcome"]) for item in items] == [
        ("key.create", None, "failed"),
        ("key.create", "other", "done"),
        ("key.create", "billing", "done"),
    ]
    assert items[0]["actor"].startswith("local:")
    assert len(json.loads(noonmark("audit", "-n", "1", "--json"))["items"]) == 1
    (mine,) = json.loads(noonmark("audit", "--namespace", "billing", "--since", "1h", "--json"))["items"]
    assert mine["after"]["name"] == "one"
    assert json.loads(noonmark("audit", "--until", "1h", "--json")) == {"items": []}
    assert "key.create" in noonmark("audit", "--outcome", "done", "-o", "wide")
    assert json.loads(noonmark("audit", "--until", "yesterday", "--json"))["items"] == []
    assert "is not a time" in noonmark("audit", "--since", "soon", code=2)
