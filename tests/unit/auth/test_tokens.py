"""The form of API tokens."""

import hashlib
import re

import pytest

from noonmark.auth.tokens import ApiToken, is_key_id

TOKEN = "nmk_abcdefghij12_" + "S" * 43


def test_a_token_is_read_into_id_and_secret():
    token = ApiToken.parse(TOKEN)

    assert token is not None
    assert (token.key_id, token.secret) == ("abcdefghij12", "S" * 43)
    assert str(token) == TOKEN


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nmk_",
        TOKEN[:-1],
        TOKEN + "x",
        TOKEN + "\n",
        " " + TOKEN,
        TOKEN.upper(),
        TOKEN.replace("nmk_", "nmp_"),
        TOKEN.replace("abcdefghij12", "ABCDEFGHIJ12"),
        TOKEN[:-1] + "-",
        TOKEN[:-1] + "é",
        "nmk_abcdefghij12-" + "S" * 43,
        "nmk_abcdefghij\uff11\uff12_" + "S" * 43,
        "x" * 1_000_000,
    ],
)
def test_what_is_not_exactly_a_token_is_none(text):
    assert ApiToken.parse(text) is None


def test_made_tokens_differ_can_be_read_and_are_matched_by_the_hash_of_their_secret_alone():
    made = [ApiToken.mint() for _ in range(50)]

    assert len({token.key_id for token in made}) == len({token.secret for token in made}) == 50
    for token in made:
        assert re.fullmatch("nmk_[a-z0-9]{12}_[A-Za-z0-9]{43}", str(token))
        assert ApiToken.parse(str(token)) == token
        assert token.matches(hashlib.sha256(token.secret.encode()).digest())
        assert not token.matches(hashlib.sha256(str(token).encode()).digest())
        assert not token.matches(b"")


def test_a_secret_has_256_bits():
    assert 62**43 >= 2**256


def test_a_printed_token_object_shows_no_secret():
    assert "SSS" not in repr(ApiToken.parse(TOKEN))


def test_ids_of_keys_are_told_from_other_texts():
    assert is_key_id("abcdefghij12")
    assert not any(
        is_key_id(text) for text in ("", "abcdefghij1", "abcdefghij123", "abcdefghij1-", "ABCDEFGHIJ12")
    )
