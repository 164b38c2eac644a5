import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.core.words import Lane
from noonmark.kafka.messages import (
    BadSignature,
    MalformedMessage,
    RunMessageError,
    Signer,
    UnknownKey,
    decode_run,
    encode_run,
    lane_of,
)

SIGNER = Signer({"2026-06": b"0123456789abcdef0123456789abcdef"}, "2026-06")
RUN = {
    "run_id": UUID("01890a5d-ac96-774b-bcce-b302099a8057"),
    "job_id": UUID("01890a5d-ac96-774b-bcce-b302099a8058"),
    "namespace": "default",
    "pool": "default",
    "lane": Lane.HIGH,
    "scheduled_for": datetime(2026, 6, 1, 9, 0, 0, 123456, tzinfo=UTC),
    "fence": 3,
    "job_version": 2,
}


def encoded(**changes):
    return encode_run(SIGNER, **(RUN | changes))


def altered(**changes):
    document = json.loads(encoded())
    document["data"].update(changes)
    return json.dumps(document).encode()


def test_a_run_comes_back_as_it_went():
    message = decode_run(encoded())
    SIGNER.verify(message)
    assert (message.run_id, message.job_id) == (RUN["run_id"], RUN["job_id"])
    assert (message.namespace, message.pool, lane_of(message)) == ("default", "default", Lane.HIGH)
    assert message.scheduled_for == RUN["scheduled_for"]
    assert (message.fence, message.job_version, message.key_id) == (3, 2, "2026-06")


def test_the_value_is_a_cloudevent():
    document = json.loads(encoded())
    assert document["specversion"] == "1.0"
    assert document["type"] == "noonmark.run.queued.v1"
    assert document["source"] == "noonmark/dispatcher"
    assert document["id"] == f"{RUN['run_id']}.3"
    assert document["datacontenttype"] == "application/json"
    assert document["data"]["scheduled_for"] == "2026-06-01T09:00:00.123456Z"
    assert document["data"]["lane"] == "high"


def test_the_signature_is_plain_hmac_sha256_over_the_canonical_string():
    instant = int((RUN["scheduled_for"] - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))
    content = f"v1|default|default|high|{RUN['run_id'].hex}|{RUN['job_id'].hex}|{instant}|3|2"
    expected = hmac.digest(b"0123456789abcdef0123456789abcdef", content.encode(), hashlib.sha256).hex()
    assert decode_run(encoded()).signature == expected


def test_another_zone_is_written_in_utc_and_signed_alike():
    there = RUN["scheduled_for"].astimezone(timezone(timedelta(hours=2)))
    assert encoded(scheduled_for=there) == encoded()


@pytest.mark.parametrize(
    "change",
    [
        {"run_id": "01890a5d-ac96-774b-bcce-b302099a8059"},
        {"job_id": "01890a5d-ac96-774b-bcce-b302099a8059"},
        {"namespace": "other"},
        {"pool": "other"},
        {"lane": "low"},
        {"scheduled_for": "2026-06-01T09:00:00.123457Z"},
        {"fence": 4},
        {"job_version": 3},
        {"signature": "0" * 64},
        {"signature": "é" * 64},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_member_is_signed(change):
    with pytest.raises(BadSignature):
        SIGNER.verify(decode_run(altered(**change)))


def test_a_key_this_process_lacks_is_told_apart_from_a_bad_signature():
    with pytest.raises(UnknownKey, match="2031"):
        SIGNER.verify(decode_run(altered(key_id="2031")))


def test_an_old_key_still_verifies_after_a_new_one_signs():
    rotated = Signer({"2026-06": b"0123456789abcdef0123456789abcdef", "2026-07": b"f" * 32}, "2026-07")
    rotated.verify(decode_run(encoded()))
    newer = decode_run(encode_run(rotated, **RUN))
    rotated.verify(newer)
    with pytest.raises(UnknownKey):
        SIGNER.verify(newer)


def test_secrets_do_not_show_and_weak_ones_are_refused():
    assert "0123456789" not in repr(SIGNER)
    with pytest.raises(ValueError, match="at least 16"):
        Signer({"k": b"short"}, "k")
    with pytest.raises(ValueError, match="not among the keys"):
        Signer({"k": b"x" * 32}, "other")
    with pytest.raises(ValueError, match="letters, digits"):
        Signer({'k"': b"x" * 32}, 'k"')


def test_members_of_later_versions_are_ignored():
    document = json.loads(encoded())
    document["traceparent"] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    document["data"]["hint"] = {"nested": [1]}
    SIGNER.verify(decode_run(json.dumps(document).encode()))


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff\xfe",
        b"{",
        b"null",
        b'{"a":NaN}',
        b"[" * 4000,
        b'{"x":' * 600 + b"1" + b"}" * 600,
        b'{"specversion":"1.0","type":"noonmark.run.queued.v2"}',
        encoded()[:-1],
        encoded().replace(b'"1.0"', b'"0.3"'),
        altered(fence="3"),
        altered(fence=0),
        altered(fence=2**63),
        altered(fence=10**400),
        altered(run_id="not-a-uuid"),
        altered(lane="urgent"),
        altered(scheduled_for="2026-06-01T09:00:00"),
        altered(scheduled_for="never"),
        altered(signature="short"),
        altered(namespace=""),
        altered(namespace=None),
        altered(pool="x" * 129),
        altered(filler="x" * 5000),
    ],
    ids=range(23),
)
def test_what_is_no_run_message_is_malformed_and_nothing_else(value):
    with pytest.raises(MalformedMessage):
        decode_run(value)


@given(st.binary(max_size=600))
def test_no_bytes_raise_anything_but_a_run_message_error(value):
    with pytest.raises(RunMessageError):
        decode_run(value)


@given(st.data())
def test_a_damaged_message_is_never_accepted_as_another(data):
    value = bytearray(encoded())
    at = data.draw(st.integers(0, len(value) - 1))
    value[at] = data.draw(st.integers(0, 255))
    try:
        message = decode_run(bytes(value))
        SIGNER.verify(message)
    except RunMessageError:
        return
    assert (message.run_id, message.fence, message.scheduled_for) == (RUN["run_id"], 3, RUN["scheduled_for"])
