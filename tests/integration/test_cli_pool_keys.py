"""`noonmark pool rotate-key`, `retire-key` and `keys`."""

from __future__ import annotations

import json

import psycopg
import pytest
from tests.support.cli import call

from noonmark.store.cluster.pools import read_keys

pytestmark = pytest.mark.usefixtures("command_line")


def keys(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [key.key_id for key in read_keys(connection, "default")]


def test_a_new_key_signs_at_once_and_the_old_one_is_believed_until_it_is_retired(emptied_database):
    (old,) = keys(emptied_database)

    new = json.loads(call("pool", "rotate-key", "default", "--json").stdout)["key_id"]

    assert keys(emptied_database) == [new, old]
    call("pool", "retire-key", "default", old)
    assert keys(emptied_database) == [new]
    shown = json.loads(call("pool", "keys", "default", "--json").stdout)["items"]
    assert [(key["key_id"], key["retired_at"] is None) for key in shown] == [(new, True), (old, False)]
    assert all(set(key) == {"key_id", "created_at", "retired_at"} for key in shown)


def test_the_newest_key_and_one_that_is_not_there_cannot_be_retired(emptied_database):
    (only,) = keys(emptied_database)

    for key_id in (only, "nothing"):
        assert "rotate-key" in call("pool", "retire-key", "default", key_id, code=1).stderr

    assert keys(emptied_database) == [only]


@pytest.mark.parametrize("words", [("rotate-key", "x"), ("keys", "x")])
def test_an_unknown_pool_is_told(words):
    assert "pool 'x' does not exist" in call("pool", *words, code=1).stderr
