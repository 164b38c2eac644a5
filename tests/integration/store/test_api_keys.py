"""API keys: what may be made, by whom, and how they are listed and ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from tests.support.emptying import turn_clock
from tests.support.keys import ADMIN

from noonmark.auth.key_issuing import issue_key
from noonmark.core.access.roles import Permission, Principal, Role
from noonmark.store.access.api_keys import (
    KeyNotAllowedError,
    KeyRequestError,
    NewKey,
    check_may_end,
    find_key,
    has_platform_key,
    list_keys,
    revoke_key,
)
from noonmark.store.database.scope import enter_scope

JOBS_ONLY = frozenset({Permission.JOBS_READ})
KEYS_ONLY = frozenset({Permission.KEYS_WRITE})


@pytest.fixture
def db(emptied_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(emptied_database, autocommit=True) as connection:
        yield connection


def admin_of(*namespaces: str, scopes=None) -> Principal:
    return Principal("key:x", "x", dict.fromkeys(namespaces, Role.ADMIN), scopes=scopes)


def make(db, grants, *, maker=ADMIN, **more):
    roles = {place: Role.named(role) for place, role in grants.items()}
    return issue_key(db, maker, NewKey("k", roles, **more)).row


@pytest.mark.parametrize(
    ("wanted", "pointer"),
    [
        (NewKey("", {"a": Role.VIEWER}), "/name"),
        (NewKey("x" * 101, {"a": Role.VIEWER}), "/name"),
        (NewKey("a\nb", {"a": Role.VIEWER}), "/name"),
        (NewKey("k", {}), "/grants"),
        (NewKey("k", {"a": Role.VIEWER}, platform=True), "/grants"),
        (NewKey("k", {"A": Role.VIEWER}), "/grants"),
        (NewKey("k", {"a b": Role.VIEWER}), "/grants"),
        (NewKey("k", {f"n{n}": Role.VIEWER for n in range(101)}), "/grants"),
        (NewKey("k", {"a": Role.VIEWER}, scopes=frozenset()), "/scopes"),
        (NewKey("k", {"a": Role.VIEWER}, rate_per_minute=0), "/rate_per_minute"),
        (NewKey("k", {"a": Role.VIEWER}, rate_per_minute=1_000_001), "/rate_per_minute"),
        (NewKey("k", {"a": Role.VIEWER}, lives_seconds=0), "/expires_in_seconds"),
        (NewKey("k", {"a": Role.VIEWER}, lives_seconds=4e8), "/expires_in_seconds"),
    ],
)
def test_a_key_that_means_nothing_is_refused_with_the_field(db, wanted, pointer):
    with pytest.raises(KeyRequestError) as caught:
        issue_key(db, ADMIN, wanted)

    assert caught.value.pointer == pointer
    assert list_keys(db, ended=True) == []


@pytest.mark.parametrize(
    ("maker", "wanted", "allowed"),
    [
        (admin_of("a"), NewKey("k", {"a": Role.ADMIN}), True),
        (admin_of("a", "b"), NewKey("k", {"a": Role.ADMIN, "b": Role.VIEWER}), True),
        (admin_of("a"), NewKey("k", {"b": Role.VIEWER}), False),
        (admin_of("a"), NewKey("k", {"a": Role.VIEWER, "b": Role.VIEWER}), False),
        (admin_of("a"), NewKey("k", {"*": Role.VIEWER}), False),
        (admin_of("*"), NewKey("k", {"a": Role.ADMIN}), True),
        (admin_of("*"), NewKey("k", {"*": Role.VIEWER}), False),
        (admin_of("*"), NewKey("k", {}, platform=True), False),
        (ADMIN, NewKey("k", {"*": Role.ADMIN}), True),
        (ADMIN, NewKey("k", {}, platform=True), True),
        (Principal("e", "e", {"a": Role.EDITOR}), NewKey("k", {"a": Role.VIEWER}), False),
        (Principal("n", "n"), NewKey("k", {"a": Role.VIEWER}), False),
        (admin_of("a", scopes=KEYS_ONLY), NewKey("k", {"a": Role.ADMIN}), False),
        (admin_of("a", scopes=KEYS_ONLY), NewKey("k", {"a": Role.ADMIN}, scopes=JOBS_ONLY), False),
        (admin_of("a", scopes=KEYS_ONLY), NewKey("k", {"a": Role.ADMIN}, scopes=KEYS_ONLY), True),
        (admin_of("a", scopes=JOBS_ONLY), NewKey("k", {"a": Role.ADMIN}, scopes=JOBS_ONLY), False),
        (
            Principal("p", "p", platform=True, scopes=JOBS_ONLY),
            NewKey("k", {}, platform=True, scopes=JOBS_ONLY),
            False,
        ),
        (Principal("p", "p", platform=True, scopes=KEYS_ONLY), NewKey("k", {}, platform=True), False),
        (
            Principal("p", "p", platform=True, scopes=KEYS_ONLY),
            NewKey("k", {}, platform=True, scopes=KEYS_ONLY),
            True,
        ),
    ],
)
def test_no_key_reaches_further_than_who_makes_it(db, maker, wanted, allowed):
    if allowed:
        assert issue_key(db, maker, wanted).row.created_by == maker.id
        return
    with pytest.raises(KeyNotAllowedError):
        issue_key(db, maker, wanted)
    assert list_keys(db) == []


@pytest.mark.parametrize(
    ("maker", "grants", "platform", "allowed"),
    [
        (admin_of("a"), {"a": "viewer"}, False, True),
        (admin_of("a"), {"a": "viewer", "b": "viewer"}, False, False),
        (admin_of("*"), {"a": "viewer", "b": "viewer"}, False, True),
        (admin_of("*"), {"*": "viewer"}, False, False),
        (admin_of("*"), {}, True, False),
        (ADMIN, {}, True, True),
    ],
)
def test_a_key_is_ended_by_who_administers_all_that_it_reaches(maker, grants, platform, allowed):
    if allowed:
        check_may_end(maker, grants, platform=platform)
    else:
        with pytest.raises(KeyNotAllowedError):
            check_may_end(maker, grants, platform=platform)


def test_a_key_is_shown_without_anything_secret(db):
    key = issue_key(db, ADMIN, NewKey("orders", {"a": Role.EDITOR}, signs=True, lives_seconds=60))
    row = find_key(db, key.row.key_id)

    assert row == key.row
    assert row.signs
    assert row.state == "valid"
    assert row.expires_at - row.created_at == timedelta(seconds=60)
    assert key.token.secret not in str(row)
    assert key.signing_key.secret.hex() not in str(row)
    assert find_key(db, "nobody") is None


def test_keys_are_listed_by_namespace_with_those_that_reach_everywhere(db):
    a, b, both, every, platform = (
        make(db, {"a": "viewer"}),
        make(db, {"b": "viewer"}),
        make(db, {"a": "viewer", "b": "admin"}),
        make(db, {"*": "viewer"}),
        make(db, {}, platform=True),
    )

    def ids(**wanted):
        return {row.key_id for row in list_keys(db, **wanted)}

    assert ids(namespace="a") == {row.key_id for row in (a, both, every, platform)}
    assert ids() == {row.key_id for row in (a, b, both, every, platform)}
    first = list_keys(db, limit=2)
    rest = list_keys(db, limit=10, after=first[-1].key_id)
    assert [row.key_id for row in [*first, *rest]] == sorted(ids())


def test_ended_keys_are_listed_on_demand(db):
    revoked, expired, valid = (
        make(db, {"a": "viewer"}),
        make(db, {"a": "viewer"}, lives_seconds=60),
        make(db, {"a": "viewer"}),
    )
    assert revoke_key(db, revoked.key_id)
    turn_clock(db, timedelta(minutes=1))

    assert [row.key_id for row in list_keys(db)] == [valid.key_id]
    assert {row.key_id: row.state for row in list_keys(db, ended=True)} == {
        revoked.key_id: "revoked",
        expired.key_id: "expired",
        valid.key_id: "valid",
    }


def test_a_revoked_key_keeps_the_time_of_its_end(db):
    key = make(db, {"a": "viewer"})
    assert revoke_key(db, key.key_id)
    at = find_key(db, key.key_id).revoked_at
    turn_clock(db, timedelta(hours=1))

    assert not revoke_key(db, key.key_id)
    assert not revoke_key(db, "nobody")
    assert find_key(db, key.key_id).revoked_at == at


def test_keys_are_made_listed_and_ended_under_row_level_security(db):
    make(db, {"b": "viewer"})
    with db.transaction():
        enter_scope(db, ["a"])
        mine = make(db, {"a": "viewer"}, maker=admin_of("a"), signs=True)
        assert [row.key_id for row in list_keys(db)] == [mine.key_id]
        assert revoke_key(db, mine.key_id)
        assert find_key(db, mine.key_id).state == "revoked"


def test_only_valid_platform_keys_count_as_first_keys(db):
    assert not has_platform_key(db)
    make(db, {"*": "admin"})
    assert not has_platform_key(db)
    key = make(db, {}, platform=True, lives_seconds=60)
    assert has_platform_key(db)
    turn_clock(db, timedelta(minutes=1))
    assert not has_platform_key(db)
    turn_clock(db, timedelta(0))
    revoke_key(db, key.key_id)
    assert not has_platform_key(db)
