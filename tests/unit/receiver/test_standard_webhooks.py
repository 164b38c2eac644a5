"""The library `standardwebhooks` is a second opinion: each side verifies what the other has signed."""

import time
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from noonmark.core.access.webhook_signature import new_secret, read_secret, sign, sign_fence
from noonmark.receiver import SignatureError, verify

BODIES = ["", "{}", '{"user_id": 42}', '{"name": "Zo\u00eb \u2603"}', "not JSON", "a.b.c", "x" * 100_000]
PLACE = {"fence": 7, "attempt": 2, "scheduled_for": "2026-06-01T09:00:00Z"}


def our_headers(body: str, *secrets: str, at: int | None = None) -> dict[str, str]:
    """The headers of a call that noonmark has signed with these secrets."""
    call_id, timestamp = str(uuid4()), int(time.time()) if at is None else at
    keys = [read_secret(secret) for secret in secrets]
    return {
        "webhook-id": call_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(call_id, timestamp, body.encode(), keys),
        "Noonmark-Fence": str(PLACE["fence"]),
        "Noonmark-Attempt": str(PLACE["attempt"]),
        "Noonmark-Scheduled-For": str(PLACE["scheduled_for"]),
        "Noonmark-Signature": sign_fence(call_id, timestamp, keys, **PLACE),
    }


def their_headers(body: str, secret: str, *, at: int | None = None) -> dict[str, str]:
    """The headers of a call that the library has signed."""
    call_id, timestamp = f"msg_{uuid4().hex}", int(time.time()) if at is None else at
    signature = Webhook(secret).sign(call_id, datetime.fromtimestamp(timestamp, UTC), body)
    return {"webhook-id": call_id, "webhook-timestamp": str(timestamp), "webhook-signature": signature}


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body[:20])
def test_the_library_verifies_what_noonmark_signs(body):
    secret = new_secret()

    Webhook(secret).verify(body, our_headers(body, secret), json_parse=False)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body[:20])
def test_the_receiver_verifies_what_the_library_signs(body):
    secret = new_secret()
    headers = their_headers(body, secret)

    call = verify(headers, body.encode(), [secret])

    assert (call.id, str(call.timestamp)) == (headers["webhook-id"], headers["webhook-timestamp"])
    assert call.fence is None


def test_during_a_rotation_the_library_verifies_with_either_secret():
    old, new = new_secret(), new_secret()
    headers = our_headers("{}", old, new)

    for secret in (old, new):
        assert Webhook(secret).verify("{}", headers) == {}


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_both_refuse_a_call_without_one_of_the_headers(name):
    secret = new_secret()
    headers = our_headers("{}", secret)
    del headers[name]

    refused_by_both(headers, "{}", secret)


@pytest.mark.parametrize("seconds", [-400, 400])
def test_both_refuse_a_call_of_another_time(seconds):
    secret, at = new_secret(), int(time.time()) + seconds

    refused_by_both(our_headers("{}", secret, at=at), "{}", secret)
    refused_by_both(their_headers("{}", secret, at=at), "{}", secret)


def test_both_refuse_another_secret_another_body_and_another_id():
    secret = new_secret()
    for headers in (our_headers("{}", secret), their_headers("{}", secret)):
        refused_by_both(headers, "{}", new_secret())
        refused_by_both(headers, "[]", secret)
        refused_by_both({**headers, "webhook-id": "msg_other"}, "{}", secret)


def test_both_pass_over_signatures_of_other_versions():
    secret = new_secret()
    headers = their_headers("{}", secret)
    headers["webhook-signature"] = f"v1a,AAAA {headers['webhook-signature']}"

    assert Webhook(secret).verify("{}", headers) == {}
    assert verify(headers, b"{}", [secret]).id == headers["webhook-id"]


def refused_by_both(headers: dict[str, str], body: str, secret: str) -> None:
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body, headers, json_parse=False)
    with pytest.raises(SignatureError):
        verify(headers, body.encode(), [secret])
