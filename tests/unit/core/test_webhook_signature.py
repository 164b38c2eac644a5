"""Signatures of calls: vectors made with openssl, what a receiver refuses, and keys that change over."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from noonmark.core.access.webhook_signature import (
    SecretError,
    SignatureError,
    new_secret,
    read_secret,
    sign,
    sign_fence,
    verify,
)

VECTORS = json.loads((Path(__file__).parents[2] / "cases" / "webhook_vectors.json").read_text())
NAMES = [vector["name"] for vector in VECTORS]
ONE = VECTORS[0]
NOW = ONE["timestamp"]


def headers_of(vector, *, keys=(0, 1), **changed):
    headers = {
        "webhook-id": vector["id"],
        "webhook-timestamp": str(vector["timestamp"]),
        "webhook-signature": " ".join(vector["webhook_signature"][key] for key in keys),
        "Noonmark-Fence": str(vector["fence"]),
        "Noonmark-Attempt": str(vector["attempt"]),
        "Noonmark-Scheduled-For": vector["scheduled_for"],
        "Noonmark-Signature": " ".join(vector["noonmark_signature"][key] for key in keys),
    }
    headers |= {name.replace("_", "-"): value for name, value in changed.items()}
    return {name: value for name, value in headers.items() if value is not None}


def check(vector=ONE, *, body=None, secrets=None, now=NOW, keys=(0, 1), **changed):
    data = vector["body"].encode() if body is None else body
    return verify(headers_of(vector, keys=keys, **changed), data, secrets or vector["secrets"][:1], now=now)


@pytest.mark.parametrize("vector", VECTORS, ids=NAMES)
def test_signatures_are_those_of_another_implementation(vector):
    keys = [read_secret(secret) for secret in vector["secrets"]]
    id_, at = vector["id"], vector["timestamp"]
    place = {name: vector[name] for name in ("fence", "attempt", "scheduled_for")}

    assert sign(id_, at, vector["body"].encode(), keys) == " ".join(vector["webhook_signature"])
    assert sign_fence(id_, at, keys, **place) == " ".join(vector["noonmark_signature"])


def test_the_vector_that_the_standard_publishes_holds():
    key = read_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")

    made = sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}', [key])

    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("vector", VECTORS, ids=NAMES)
@pytest.mark.parametrize("secret", [0, 1])
def test_a_receiver_believes_a_call_that_either_key_signed(vector, secret):
    call = check(vector, secrets=[vector["secrets"][secret]])

    assert (call.id, call.timestamp) == (vector["id"], vector["timestamp"])
    assert (call.fence, call.attempt) == (vector["fence"], vector["attempt"])
    assert call.scheduled_for == datetime.fromisoformat(vector["scheduled_for"])
    assert call.scheduled_for.tzinfo == UTC


def test_names_of_headers_are_read_in_any_case():
    headers = {name.upper(): value for name, value in headers_of(ONE).items()}

    assert verify(headers, ONE["body"].encode(), ONE["secrets"], now=NOW).fence == ONE["fence"]


@pytest.mark.parametrize("place", range(len(ONE["body"])))
def test_any_altered_byte_is_refused(place):
    body = bytearray(ONE["body"].encode())
    body[place] ^= 1

    with pytest.raises(SignatureError, match="webhook-signature matches"):
        check(body=bytes(body))


@pytest.mark.parametrize(
    "changed",
    [
        {"Noonmark_Fence": "8"},
        {"Noonmark_Attempt": "3"},
        {"Noonmark_Scheduled_For": "2026-06-01T09:00:01Z"},
        {"Noonmark_Signature": None},
        {"Noonmark_Signature": ""},
        {"Noonmark_Fence": None},
        {"Noonmark_Fence": "-7"},
        {"Noonmark_Attempt": None},
        {"webhook_id": None},
        {"webhook_id": "a.b"},
        {"webhook_id": "0197a2b4-7c00-7000-8000-00000000002b"},
        {"webhook_timestamp": None},
        {"webhook_timestamp": str(NOW + 1)},
        {"webhook_timestamp": "1e9"},
        {"webhook_timestamp": ""},
        {"webhook_signature": None},
        {"webhook_signature": "v1," + "A" * 44},
        {"webhook_signature": ONE["webhook_signature"][0].replace("v1,", "v2,")},
        {"webhook_signature": ONE["webhook_signature"][0].replace("v1,", "")},
        {"webhook_signature": "v1,é"},
    ],
    ids=str,
)
def test_a_header_that_was_altered_or_is_missing_is_refused(changed):
    with pytest.raises(SignatureError):
        check(**changed)


@pytest.mark.parametrize(
    ("off", "fits"), [(300, True), (-300, True), (301, False), (-301, False), (86_400, False)]
)
def test_a_call_is_believed_for_five_minutes_in_both_directions(off, fits):
    if fits:
        assert check(now=NOW + off).id == ONE["id"]
    else:
        with pytest.raises(SignatureError, match="300 s are allowed"):
            check(now=NOW + off)


def test_after_a_rotation_the_old_key_alone_is_refused_and_unknown_versions_are_passed_over():
    new = ONE["secrets"][1:]

    assert check(secrets=new, webhook_signature=f"v1a,x v9 {ONE['webhook_signature'][1]}").fence == 7
    with pytest.raises(SignatureError, match="the secret differs"):
        check(secrets=new, keys=(0,))


def test_a_body_cannot_stand_in_for_the_signature_of_the_fence():
    vector = VECTORS[3]

    with pytest.raises(SignatureError, match="noonmark-signature"):
        check(vector, Noonmark_Signature=" ".join(vector["webhook_signature"]))


def test_a_call_without_our_headers_is_one_of_the_plain_standard():
    plain = {name: value for name, value in headers_of(ONE).items() if name.startswith("webhook-")}

    assert verify(plain, ONE["body"].encode(), ONE["secrets"], now=NOW).fence is None


def test_secrets_are_random_and_read_back():
    first, second = new_secret(), new_secret()

    assert first != second
    assert len(read_secret(first)) == 32


@pytest.mark.parametrize(
    "text", ["", "whsec_", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!!!!", "whsec_é"]
)
def test_what_is_no_secret_is_refused_without_being_quoted(text):
    with pytest.raises(SecretError) as told:
        read_secret(text)

    assert len(text) < 8 or text not in str(told.value)
