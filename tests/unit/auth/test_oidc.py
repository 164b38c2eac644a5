"""Tokens of an identity provider: which are believed, and with which keys."""

import base64
import json
import time

import jwt
import pytest
from structlog.testing import capture_logs
from tests.support.issuer import (
    AUDIENCE,
    EC_KEY,
    ED_KEY,
    ISSUER,
    RSA_KEY,
    WEAK_KEY,
    WIDE_KEY,
    Clock,
    Provider,
    jwk,
    token,
)

from noonmark.auth.errors import AuthenticationError, AuthenticationReason
from noonmark.auth.jwks import IssuerKeys
from noonmark.auth.oidc import TokenVerifier
from noonmark.core.access.roles import Role
from noonmark.settings import Settings


def verifier(provider, clock=None, wall=time.time):
    keys = IssuerKeys(ISSUER, fetch=provider.fetch, clock=clock or Clock())
    return TokenVerifier(keys, issuer=ISSUER, audience=AUDIENCE, roles_claim="noonmark_roles", clock=wall)


def refusal(text, provider=None):
    with pytest.raises(AuthenticationError) as caught:
        verifier(provider or Provider(jwk(RSA_KEY, "k1"))).principal(text)
    assert text not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("key", "algorithm"), [(RSA_KEY, "RS256"), (RSA_KEY, "PS256"), (EC_KEY, "ES256"), (ED_KEY, "EdDSA")]
)
def test_signatures_of_key_pairs_are_believed(key, algorithm):
    found = verifier(Provider(jwk(key, "k1"))).principal(token(key, algorithm))

    assert found.id == "oidc:u1"
    assert dict(found.grants) == {"a": Role.VIEWER}


def test_a_token_that_is_not_signed_is_refused():
    assert refusal(token("", "none")).reason is AuthenticationReason.TOKEN_REFUSED


def test_a_token_signed_with_the_public_key_as_a_secret_is_refused():
    public = json.dumps(jwk(RSA_KEY, "k1")).encode()
    head = {"alg": "HS256", "kid": "k1", "typ": "JWT"}
    body = jwt.decode(token(), options={"verify_signature": False})
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (head, body)]
    mac = jwt.get_algorithm_by_name("HS256").sign(b".".join(parts), public)
    forged = b".".join([*parts, base64.urlsafe_b64encode(mac).rstrip(b"=")]).decode()

    assert refusal(forged).reason is AuthenticationReason.TOKEN_REFUSED


@pytest.mark.parametrize(
    ("key", "algorithm", "listed"),
    [
        (RSA_KEY, "RS512", jwk(RSA_KEY, "k1")),
        (RSA_KEY, "RS384", jwk(RSA_KEY, "k1", alg="RS384")),
        (RSA_KEY, "PS256", jwk(RSA_KEY, "k1", alg="RS256")),
        (RSA_KEY, "RS256", jwk(RSA_KEY, "k1", use="enc")),
        (WEAK_KEY, "RS256", jwk(WEAK_KEY, "k1")),
        (WIDE_KEY, "ES384", jwk(WIDE_KEY, "k1")),
        (EC_KEY, "ES256", jwk(RSA_KEY, "k1")),
        ("s" * 32, "HS256", {"kty": "oct", "k": "c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M", "kid": "k1"}),
    ],
)
def test_other_algorithms_and_keys_are_not(key, algorithm, listed):
    with pytest.warns() if key is WEAK_KEY else _quiet():
        text = token(key, algorithm)
    assert refusal(text, Provider(listed)).reason is AuthenticationReason.TOKEN_REFUSED


def _quiet():
    from contextlib import nullcontext  # noqa: PLC0415

    return nullcontext()


@pytest.mark.parametrize(
    ("claims", "told"),
    [
        ({"iss": "https://evil.example.com"}, "another issuer"),
        ({"iss": ISSUER + "/"}, "another issuer"),
        ({"aud": "other"}, "another audience"),
        ({"aud": ["other", "more"]}, "another audience"),
        ({"aud": None}, "its `aud` claim is missing"),
        ({"exp": None}, "its `exp` claim is missing"),
        ({"iss": None}, "its `iss` claim is missing"),
        ({"sub": None}, "its `sub` claim is missing"),
        # Far ahead: these are made when tests are collected, long before this one may run.
        ({"nbf": time.time() + 86_400}, "not valid yet"),
        ({"exp": "soon"}, "cannot be read"),
    ],
)
def test_wrong_claims_are_refused_with_what_is_wrong(claims, told):
    assert told in str(refusal(token(**claims)))


def test_a_refusal_says_which_tokens_are_accepted():
    found = refusal(token(aud="other"))
    assert found.hint == f"get a token whose `iss` is {ISSUER} and whose `aud` contains {AUDIENCE}"


def test_the_issuer_is_not_asked_for_the_keys_of_others():
    provider = Provider(jwk(RSA_KEY, "k1"))

    assert "another issuer" in str(refusal(token(iss="https://evil.example.com", kid="theirs"), provider))
    assert "not signed with ES256, EdDSA, PS256, RS256" in str(refusal(token("s" * 32, "HS256"), provider))
    assert provider.asked == []


def test_a_list_of_audiences_may_hold_ours():
    assert verifier(Provider(jwk(RSA_KEY, "k1"))).principal(token(aud=["other", AUDIENCE])).id == "oidc:u1"


def test_clocks_may_differ_by_half_a_minute():
    known = verifier(Provider(jwk(RSA_KEY, "k1")))
    assert known.principal(token(exp=time.time() - 20)).id == "oidc:u1"
    assert known.principal(token(nbf=time.time() + 20)).id == "oidc:u1"
    with pytest.raises(AuthenticationError) as caught:
        known.principal(token(exp=time.time() - 40))
    assert caught.value.reason is AuthenticationReason.EXPIRED


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "..", "é" * 50, "x" * 20_000, "nmk_x", "\ud800.a.b"])
def test_what_is_no_token_is_refused(text):
    with pytest.raises(AuthenticationError):
        verifier(Provider(jwk(RSA_KEY, "k1"))).principal(text)


def test_a_changed_token_is_refused():
    head, body, signature = token().split(".")
    other = token(sub="root").split(".")[1]

    assert "signature" in str(refusal(f"{head}.{other}.{signature}"))
    assert "signature" in str(refusal(f"{head}.{body}.{signature[:-4]}AAAA"))


def test_a_key_that_is_new_is_fetched_and_guessing_is_not_answered_with_fetching():
    provider, clock = Provider(jwk(RSA_KEY, "k1")), Clock()
    known = verifier(provider, clock)
    known.principal(token())
    asked = len(provider.asked)
    provider.keys = [jwk(EC_KEY, "k2")]

    with pytest.raises(AuthenticationError):
        known.principal(token(EC_KEY, "ES256", "k2"))  # fetched a moment ago
    for n in range(20):
        with pytest.raises(AuthenticationError):
            known.principal(token(EC_KEY, "ES256", f"guess{n}"))
    assert len(provider.asked) == asked
    clock.at += 31
    assert known.principal(token(EC_KEY, "ES256", "k2")).id == "oidc:u1"
    assert len(provider.asked) == asked + 2
    with pytest.raises(AuthenticationError):
        known.principal(token(sub="another"))  # the old key is withdrawn


def test_keys_are_believed_while_the_issuer_is_away_and_not_for_ever_once_it_is_back():
    provider, clock = Provider(jwk(RSA_KEY, "k1")), Clock()
    known = verifier(provider, clock)
    known.principal(token())
    provider.away = True
    clock.at += 10_000

    assert known.principal(token(sub="u2")).id == "oidc:u2"
    provider.away, provider.keys = False, [jwk(EC_KEY, "k2")]
    clock.at += 31
    with pytest.raises(AuthenticationError):
        known.principal(token(sub="u3"))


def test_an_issuer_that_was_never_there_says_nothing_about_a_token():
    provider = Provider(jwk(RSA_KEY, "k1"))
    provider.away = True

    with capture_logs() as logged:
        assert refusal(token(), provider).reason is AuthenticationReason.ISSUER_AWAY

    (entry,) = logged
    assert (entry["event"], entry["issuer"], entry["cached_keys"]) == ("issuer_keys_not_fetched", ISSUER, 0)
    assert entry["reason"] == f"{ISSUER}/.well-known/openid-configuration does not answer: away"


@pytest.mark.parametrize(
    "discovery",
    [
        {"issuer": "https://evil.example.com", "jwks_uri": f"{ISSUER}/keys"},
        {"issuer": ISSUER, "jwks_uri": "http://login.example.com/realm/keys"},
        {"issuer": ISSUER, "jwks_uri": "file:///etc/passwd"},
        {"issuer": ISSUER},
        {"issuer": ISSUER, "jwks_uri": 7},
        [],
        "x",
    ],
)
def test_a_discovery_document_that_cannot_be_believed_gives_no_keys(discovery):
    provider = Provider(jwk(RSA_KEY, "k1"))
    provider.discovery = discovery

    assert refusal(token(), provider).reason is AuthenticationReason.ISSUER_AWAY


@pytest.mark.parametrize(
    "junk", [None, 7, {}, {"kty": "RSA"}, {"kty": "RSA", "n": "!", "e": "AQAB"}, {"kty": "EC"}]
)
def test_one_odd_key_among_others_spoils_nothing(junk):
    provider = Provider(junk, jwk(RSA_KEY, "k1"))

    assert verifier(provider).principal(token()).id == "oidc:u1"


def test_a_token_without_an_id_of_a_key_is_checked_with_the_only_one():
    assert verifier(Provider(jwk(RSA_KEY, None))).principal(token(kid=None)).id == "oidc:u1"
    two = Provider(jwk(RSA_KEY, "k1"), jwk(EC_KEY, "k2"))
    assert refusal(token(kid=None), two).reason is AuthenticationReason.TOKEN_REFUSED


def test_a_checked_token_is_remembered_for_half_a_minute_and_not_beyond_its_end():
    provider, wall = Provider(jwk(RSA_KEY, "k1")), Clock(time.time())
    known = verifier(provider, wall=wall)
    text, short = token(), token(exp=time.time() - 20)
    first, second = known.principal(text), known.principal(short)

    assert known.recall(text) is first
    assert known.recall(short) is second
    wall.at += 15
    assert known.recall(text) is first
    assert known.recall(short) is None
    wall.at += 16
    assert known.recall(text) is None
    assert known.recall(token(sub="never seen")) is None


def test_no_issuer_no_tokens():
    assert TokenVerifier.of(Settings(oidc_issuer="")) is None
    assert TokenVerifier.of(Settings(oidc_issuer=ISSUER, oidc_audience="x")) is not None
