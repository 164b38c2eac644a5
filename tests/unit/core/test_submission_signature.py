"""Signatures of submissions: the written form, what they cover, and for how long."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from noonmark.core.access.submission_signature import (
    LEEWAY_SECONDS,
    MOST_AHEAD_SECONDS,
    PublisherKey,
    Signature,
    SignedEvent,
    SubmissionSignatureError,
    sign,
    signature_header,
)

SECRET = bytes(range(32))
KEY = PublisherKey("k3y0000000id", SECRET)
EVENT = SignedEvent(
    "/shop", "order-42", "noonmark.job.create.v1", 7, b'{"name": "welcome", "note": "\xc3\xa4"}'
)
NAMESPACE, EXPIRES = "acme", 1_780_000_000

# printf 'noonmark-submission-v1\nk3y0000000id\nacme\n1780000000\n/shop\norder-42\nnoonmark.job.create.v1\n7\n%s\n' \
#   "$(printf '{"name": "welcome", "note": "ä"}' | openssl dgst -sha256 -hex | awk '{print $NF}')" |
#   openssl dgst -sha256 -mac HMAC -binary \
#     -macopt hexkey:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f | base64
BY_OPENSSL = "pMKkIpG0LiR1v5OEi97KaHuekiCoXYENybo4Y6sRueA="


def by_hand(secret: bytes, *lines: str) -> str:
    content = "".join(line + "\n" for line in ("noonmark-submission-v1", *lines))
    return base64.b64encode(hmac.new(secret, content.encode(), hashlib.sha256).digest()).decode()


def test_a_signature_is_what_openssl_makes_of_the_same_lines():
    assert sign(KEY, EVENT, namespace=NAMESPACE, expires_at=EXPIRES) == (
        f"v1.k3y0000000id.acme.1780000000.{BY_OPENSSL}"
    )


def test_an_event_without_sequence_has_an_empty_line_for_it():
    digest = hashlib.sha256(EVENT.value).hexdigest()
    lines = ("k3y0000000id", "acme", "1780000000", "/shop", "order-42", "noonmark.job.create.v1", "", digest)
    plain = EVENT._replace(sequence=None)
    assert sign(KEY, plain, namespace=NAMESPACE, expires_at=EXPIRES).rpartition(".")[2] == by_hand(
        SECRET, *lines
    )


def test_what_was_signed_fits():
    signature = Signature.read(f"v1.k3y0000000id.acme.1780000000.{BY_OPENSSL}".encode())
    assert signature[:3] == ("k3y0000000id", "acme", EXPIRES)
    assert signature.fits(SECRET, EVENT)


@pytest.mark.parametrize(
    "altered",
    [
        EVENT._replace(source="/shop2"),
        EVENT._replace(id="order-43"),
        EVENT._replace(type="noonmark.job.cancel.v1"),
        EVENT._replace(sequence=8),
        EVENT._replace(sequence=None),
        EVENT._replace(value=EVENT.value + b" "),
        EVENT._replace(value=b""),
        # Nothing moves from one part into its neighbour.
        EVENT._replace(source="/shoporder-42", id=""),
        EVENT._replace(source="/shop\norder-42", id="noonmark.job.create.v1", type="7", sequence=None),
    ],
)
def test_an_altered_event_does_not_fit(altered):
    assert not Signature.read(f"v1.k3y0000000id.acme.1780000000.{BY_OPENSSL}").fits(SECRET, altered)


@pytest.mark.parametrize(
    "header",
    [
        f"v1.k3y0000000ix.acme.1780000000.{BY_OPENSSL}",
        f"v1.k3y0000000id.acne.1780000000.{BY_OPENSSL}",
        f"v1.k3y0000000id.acme.1780000001.{BY_OPENSSL}",
        f"v1.k3y0000000id.acme.1780000000.{BY_OPENSSL[1:43]}A=",
    ],
)
def test_an_altered_signature_does_not_fit(header):
    assert not Signature.read(header).fits(SECRET, EVENT)


def test_another_secret_does_not_fit():
    signature = Signature.read(f"v1.k3y0000000id.acme.1780000000.{BY_OPENSSL}")
    assert not signature.fits(SECRET[:-1] + b"\xff", EVENT)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        b"\xff\xfe",
        "v1",
        f"v2.k3y0000000id.acme.1780000000.{BY_OPENSSL}",
        f"v1.K3Y0000000ID.acme.1780000000.{BY_OPENSSL}",
        f"v1.k3y0000000id.*.1780000000.{BY_OPENSSL}",
        f"v1.k3y0000000id.acme.-1.{BY_OPENSSL}",
        f"v1.k3y0000000id.acme.1780000000000.{BY_OPENSSL}",
        f"v1.k3y0000000id.acme.1780000000.{BY_OPENSSL[:-1]}",
        f"v1.k3y0000000id.acme.1780000000.{BY_OPENSSL} ",
        f"v1.k3y0000000id.acme.1780000000.{BY_OPENSSL}\n",
        f"v1.k3y0000000id.acme.1780000000.{BY_OPENSSL},{BY_OPENSSL}",
    ],
)
def test_what_is_not_written_as_a_signature_is_refused(header):
    with pytest.raises(SubmissionSignatureError, match=r"v1\.KEY_ID\.NAMESPACE\.EXPIRES\.MAC"):
        Signature.read(header)


@pytest.mark.parametrize("ahead", [0.001, 60, MOST_AHEAD_SECONDS, MOST_AHEAD_SECONDS + LEEWAY_SECONDS])
def test_a_signature_is_good_until_its_expiry_and_for_a_day_at_most(ahead):
    Signature.read(f"v1.k3y0000000id.acme.1780000000.{BY_OPENSSL}").check_time(EXPIRES - ahead)


@pytest.mark.parametrize(
    ("ahead", "told"),
    [
        (0, "expired 0 s before"),
        (-3600, "expired 3600 s before"),
        (MOST_AHEAD_SECONDS + LEEWAY_SECONDS + 1, "86400 s are allowed"),
    ],
)
def test_too_late_and_too_far_ahead_are_refused(ahead, told):
    with pytest.raises(SubmissionSignatureError, match=told):
        Signature.read(f"v1.k3y0000000id.acme.1780000000.{BY_OPENSSL}").check_time(EXPIRES - ahead)


def test_a_header_says_for_how_long_it_is_good():
    name, value = signature_header(KEY, EVENT, namespace="acme", now=1_779_999_000.7, valid_seconds=1000)
    assert (name, Signature.read(value).expires_at) == ("noonmark-signature", EXPIRES)


@pytest.mark.parametrize("namespace", ["", "*", "Acme", "a.b", "a\nb", "-a", "a" * 64])
def test_no_signature_is_made_for_what_is_no_namespace(namespace):
    with pytest.raises(SubmissionSignatureError, match="not a namespace"):
        sign(KEY, EVENT, namespace=namespace, expires_at=EXPIRES)


@pytest.mark.parametrize("part", ["source", "id", "type"])
def test_no_signature_is_made_for_attributes_with_line_feeds(part):
    with pytest.raises(SubmissionSignatureError, match="control characters"):
        sign(KEY, EVENT._replace(**{part: "a\nb"}), namespace=NAMESPACE, expires_at=EXPIRES)


def test_a_written_key_is_read_and_never_shown():
    text = f"nmp_k3y0000000id_{SECRET.hex()}"
    assert PublisherKey.parse(f" {text}\n") == KEY
    assert KEY.text == text
    assert SECRET.hex() not in repr(KEY)
    assert "secret" not in repr(KEY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nmp_",
        f"nmp_short_{SECRET.hex()}",
        f"nmp_k3y0000000id_{SECRET.hex()[:-1]}",
        f"nmp_k3y0000000id_{SECRET.hex().upper()}",
        "nmk_k3y0000000id_" + "x" * 43,
    ],
)
def test_what_is_no_publishers_key_is_refused_without_being_shown(text):
    with pytest.raises(SubmissionSignatureError, match="nmp_<key id>") as refused:
        PublisherKey.parse(text)
    assert SECRET.hex()[:20] not in str(refused.value)
    assert "xxxx" not in str(refused.value)
