import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.core.instants import format_instant
from noonmark.core.states import Lane
from noonmark.kafka.messages import (
    RUNS_PER_MESSAGE,
    BadSignature,
    MalformedMessage,
    QueuedRun,
    RunMessageError,
    Signer,
    UnknownKey,
    count_runs,
    encode_run,
    encode_runs,
    lane_of,
    open_runs,
    traceparent_of,
)

SECRET = b"0123456789abcdef0123456789abcdef"
SIGNER = Signer({"2026-06": SECRET}, "2026-06")
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


def encoded(signer=SIGNER, traceparent=None, **changes):
    known = RUN | changes
    pool, lane = known.pop("pool"), known.pop("lane")
    return encode_run(signer, QueuedRun(**known), pool=pool, lane=lane, traceparent=traceparent)


def opened(value, signer=SIGNER):
    """The one run of a message."""
    (run,) = open_runs(value, signer).runs
    return run


def data_of(value):
    """The bytes of the data, found without the code under test: it is the last member."""
    return value[value.index(b'"data":') + len(b'"data":') : -1]


def altered(**changes):
    """A message whose data was changed without a key."""
    document = json.loads(encoded())
    document["data"].update(changes)
    return json.dumps(document).encode()


def enveloped(**changes):
    """A message whose attributes were changed; the data is left as it was, byte for byte."""
    value = encoded()
    document = json.loads(value) | changes
    del document["data"]
    return json.dumps(document).encode()[:-1] + b',"data":' + data_of(value) + b"}"


def signed(data):
    """A message with any data, rightly signed."""
    signature = hmac.digest(SECRET, data, hashlib.sha256).hex()
    head = json.loads(encoded()) | {"signature": signature}
    del head["data"]
    return json.dumps(head).encode()[:-1] + b',"data":' + data + b"}"


def signed_with(**changes):
    return signed(json.dumps(json.loads(encoded())["data"] | changes).encode())


def test_a_run_comes_back_as_it_went():
    batch = open_runs(encoded(), SIGNER)
    (message,) = batch.runs
    assert (message.run_id, message.job_id) == (RUN["run_id"], RUN["job_id"])
    assert (message.namespace, batch.pool, lane_of(batch)) == ("default", "default", Lane.HIGH)
    assert message.scheduled_for == RUN["scheduled_for"]
    assert (message.fence, message.job_version) == (3, 2)


def test_the_value_is_a_cloudevent():
    document = json.loads(encoded())
    assert document["specversion"] == "1.0"
    assert document["type"] == "noonmark.run.queued.v1"
    assert document["source"] == "noonmark/dispatcher"
    assert document["id"] == f"{RUN['run_id']}.3"
    assert document["datacontenttype"] == "application/json"
    assert document["data"]["scheduled_for"] == "2026-06-01T09:00:00.123456Z"
    assert document["data"]["lane"] == "high"
    assert document["keyid"] == "2026-06"
    assert all(name.isalnum() and name == name.lower() for name in document)


def test_a_name_that_json_escapes_comes_back_too():
    assert opened(encoded(namespace='a"\\b\n\u00e9%d'), SIGNER).namespace == 'a"\\b\n\u00e9%d'


@pytest.mark.parametrize("size", [16, 63, 64, 65, 200])
def test_the_signature_is_plain_hmac_sha256_over_the_bytes_of_the_data(size):
    secret = bytes(range(size))
    value = encoded(Signer({"k": secret}, "k"))
    expected = hmac.digest(secret, data_of(value), hashlib.sha256).hex()
    assert json.loads(value)["signature"] == expected


@pytest.mark.parametrize(
    "zone",
    [ZoneInfo("UTC"), ZoneInfo("Europe/Berlin"), UTC, timezone(timedelta(hours=-2, seconds=1))],
    ids=str,
)
@pytest.mark.parametrize("microsecond", [0, 1, 120000, 999999])
def test_an_instant_is_written_in_utc_and_alike_from_any_zone(zone, microsecond):
    at = RUN["scheduled_for"].replace(microsecond=microsecond)
    value = encoded(scheduled_for=at.astimezone(zone))
    assert value == encoded(scheduled_for=at)
    assert json.loads(value)["data"]["scheduled_for"] == format_instant(at)
    assert opened(value, SIGNER).scheduled_for == at


def test_an_instant_without_zone_is_refused_rather_than_guessed():
    with pytest.raises(ValueError, match="no zone"):
        encoded(scheduled_for=datetime(2026, 6, 1, 9))  # noqa: DTZ001 - it is what is refused


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
        {"novel": 1},
        {"fence": "not even valid"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_member_of_the_data_is_signed(change):
    with pytest.raises(BadSignature):
        opened(altered(**change), SIGNER)


@pytest.mark.parametrize("signature", ["0" * 64, "é" * 64])
def test_a_made_up_signature_is_refused(signature):
    with pytest.raises(BadSignature):
        opened(enveloped(signature=signature), SIGNER)


def test_data_written_differently_is_not_what_was_signed():
    value = encoded()
    with pytest.raises(BadSignature):
        opened(value.replace(b'"fence":3', b'"fence": 3'), SIGNER)
    with pytest.raises(BadSignature):
        opened(value.replace(b'"lane":"high"', b'"lane":"\\u0068igh"'), SIGNER)


def test_of_two_data_members_the_one_that_is_read_is_the_one_that_is_checked():
    value = encoded()
    forged = data_of(value).replace(b'"fence":3', b'"fence":4')
    with pytest.raises(BadSignature):
        opened(value[:-1] + b',"data":' + forged + b"}", SIGNER)
    assert opened(b'{"data":' + forged + b"," + value[1:], SIGNER).fence == 3


def test_spaces_and_order_outside_the_data_do_not_matter():
    value = encoded()
    head = json.loads(value)
    del head["data"]
    moved = b'{ "data" : \n' + data_of(value) + b" ,\t" + json.dumps(head, indent=2).encode()[1:]
    assert opened(moved, SIGNER) == opened(value, SIGNER)


def test_a_key_this_process_lacks_is_told_apart_from_a_bad_signature():
    with pytest.raises(UnknownKey, match="2031"):
        opened(enveloped(keyid="2031"), SIGNER)


def test_an_old_key_still_verifies_after_a_new_one_signs():
    rotated = Signer({"2026-06": SECRET, "2026-07": b"f" * 32}, "2026-07")
    opened(encoded(), rotated)
    newer = encoded(rotated)
    opened(newer, rotated)
    with pytest.raises(UnknownKey):
        opened(newer, SIGNER)
    with pytest.raises(BadSignature):
        opened(enveloped(keyid="2026-07"), rotated)


def test_secrets_do_not_show_and_weak_ones_are_refused():
    assert "0123456789" not in repr(SIGNER)
    with pytest.raises(ValueError, match="at least 16"):
        Signer({"k": b"short"}, "k")
    with pytest.raises(ValueError, match="not among the keys"):
        Signer({"k": b"x" * 32}, "other")
    with pytest.raises(ValueError, match="letters, digits"):
        Signer({'k"': b"x" * 32}, 'k"')
    with pytest.raises(ValueError, match="1 to 128 letters"):
        Signer({"k" * 129: b"x" * 32}, "k" * 129)


def test_the_message_of_a_traced_run_says_so_outside_of_what_is_signed():
    traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    value = encoded(traceparent=traceparent)

    assert json.loads(value)["traceparent"] == traceparent
    assert traceparent_of(value) == traceparent
    assert opened(value, SIGNER) == opened(encoded(), SIGNER)
    plain = json.loads(encoded())
    assert json.loads(value) == {**plain, "traceparent": traceparent}


def test_the_message_of_a_run_that_is_not_traced_has_no_trace():
    assert "traceparent" not in json.loads(encoded())
    assert traceparent_of(encoded(namespace='"traceparent":"x","keyid"')) is None


def test_members_of_later_versions_are_ignored():
    assert opened(enveloped(traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), SIGNER)
    assert opened(signed_with(hint={"nested": [1]}), SIGNER).fence == 3


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
        encoded().replace(b"queued.v1", b"queued.v2"),
        b'{"specversion":"1.0","type":"noonmark.run.queued.v1","id":"1","source":"s"}',
        enveloped(signature="short"),
        enveloped(signature=None),
        enveloped(signature="\ud800" * 64),
        enveloped(keyid=""),
        enveloped(keyid=1),
        enveloped(id=""),
        signed(b"null"),
        signed(b"[]"),
        signed(b'{"run_id":' * 300 + b"1" + b"}" * 300),
        signed_with(fence="3"),
        signed_with(fence=0),
        signed_with(fence=2**63),
        signed_with(fence=10**400),
        signed_with(run_id="not-a-uuid"),
        signed_with(lane="urgent"),
        signed_with(scheduled_for="2026-06-01T09:00:00"),
        signed_with(scheduled_for="never"),
        signed_with(namespace=""),
        signed_with(namespace=None),
        signed_with(pool="x" * 129),
        altered(filler="x" * 70_000),
    ],
    ids=range(33),
)
def test_what_is_no_run_message_is_malformed_and_nothing_else(value):
    with pytest.raises(MalformedMessage):
        opened(value, SIGNER)


@given(st.binary(max_size=600))
def test_no_bytes_raise_anything_but_a_run_message_error(value):
    with pytest.raises(RunMessageError):
        opened(value, SIGNER)


@given(st.data())
def test_a_damaged_message_is_never_accepted_as_another(data):
    value = bytearray(encoded())
    at = data.draw(st.integers(0, len(value) - 1))
    value[at] = data.draw(st.integers(0, 255))
    try:
        message = opened(bytes(value), SIGNER)
    except RunMessageError:
        return
    assert message == opened(encoded(), SIGNER)


# -- several runs in a message ---------------------------------------------------------------------------

SEVERAL = [
    QueuedRun(
        UUID(int=n), UUID(int=n % 3), "default", RUN["scheduled_for"] + timedelta(seconds=n), 1 + n % 2, 1
    )
    for n in range(RUNS_PER_MESSAGE)
]


def several(runs=SEVERAL):
    return encode_runs(SIGNER, runs, pool="gpu", lane=Lane.LOW)


def test_several_runs_come_back_as_they_went_in_their_order():
    batch = open_runs(several(), SIGNER)
    assert list(batch.runs) == SEVERAL
    assert (batch.pool, lane_of(batch)) == ("gpu", Lane.LOW)


def test_the_size_of_a_message_is_known_without_its_key():
    assert count_runs(several()) == RUNS_PER_MESSAGE
    assert count_runs(several(SEVERAL[:2])) == 2
    assert count_runs(encoded()) == count_runs(b"") == count_runs(b"no message") == 1


def test_the_longest_message_is_within_the_limit():
    run = QueuedRun(UUID(int=1), UUID(int=2), "\x7f" * 128, RUN["scheduled_for"], 2**63 - 1, 2**63 - 1)
    value = encode_runs(SIGNER, [run] * RUNS_PER_MESSAGE, pool="p" * 128, lane=Lane.NORMAL)
    assert len(open_runs(value, SIGNER).runs) == RUNS_PER_MESSAGE


def test_no_run_of_a_changed_message_is_used():
    value = several()
    with pytest.raises(BadSignature):
        open_runs(value.replace(str(UUID(int=5)).encode(), str(UUID(int=99)).encode()), SIGNER)
    with pytest.raises(MalformedMessage):
        open_runs(value.replace(b"runs.queued", b"run.queued"), SIGNER)


def test_a_later_release_can_add_to_each_run_of_a_message():
    document = json.loads(several(SEVERAL[:2]))
    document["data"]["hint"] = 1
    document["data"]["runs"][0].append("later")
    data = json.dumps(document.pop("data")).encode()
    document["signature"] = hmac.digest(SECRET, data, hashlib.sha256).hex()
    value = json.dumps(document).encode()[:-1] + b',"data":' + data + b"}"
    assert list(open_runs(value, SIGNER).runs) == SEVERAL[:2]


@pytest.mark.parametrize("runs", [[], [[]], [["x"] * 6], None, [[str(UUID(int=1))]], [0] * 1001])
def test_what_is_no_list_of_runs_is_malformed(runs):
    document = json.loads(several(SEVERAL[:2]))
    data = json.dumps({"pool": "gpu", "lane": "low", "runs": runs}).encode()
    del document["data"]
    document["signature"] = hmac.digest(SECRET, data, hashlib.sha256).hex()
    with pytest.raises(MalformedMessage):
        open_runs(json.dumps(document).encode()[:-1] + b',"data":' + data + b"}", SIGNER)
