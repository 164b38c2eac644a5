"""Who may publish what: signatures, tokens and bound topics; whoever brings none of these gets nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import pytest

from noonmark.auth.authenticator import Publisher
from noonmark.auth.errors import AuthenticationError, AuthenticationReason
from noonmark.core.access.roles import Permission, Principal, Role
from noonmark.core.access.submission_signature import PublisherKey, SignedEvent, signature_header
from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.intake.audit_entries import audit_entries
from noonmark.intake.authorization import Authorizer, BatchContext
from noonmark.intake.batch_checks import CheckedBatch, check
from noonmark.kafka.consumers.consumer import BatchConsumer
from noonmark.kafka.consumers.records import Record
from noonmark.schemas.events.envelope import STRUCTURED_HEADERS, parse_event, render_binary, render_structured
from noonmark.schemas.events.submissions import (
    CANCEL,
    CANCEL_RUNS,
    COMPLETE_RUN,
    CREATE,
    PAUSE,
    RESUME,
    TRIGGER,
    UPDATE,
)
from noonmark.store.access.audit import Outcome
from noonmark.store.schedules.time_facts import Moment

NOW = datetime(2026, 6, 1, tzinfo=UTC)
MOMENT = Moment(NOW, datetime(2026, 5, 1, tzinfo=UTC), TimeFacts())
NOBODY = cast("BatchConsumer", None)
JOB = "01981f2a-7c00-7000-8000-0123456789ab"
SOME_KEY = "nmk_abcdefghijkl_" + "S3cret" * 7 + "x"

EDITOR = PublisherKey("editor000000", b"e" * 32)
OPERATOR = PublisherKey("operator0000", b"o" * 32)
PLATFORM = PublisherKey("platform0000", b"p" * 32)
SCOPED = PublisherKey("scoped000000", b"s" * 32)
REVOKED = PublisherKey("revoked00000", b"r" * 32)


class Keys:
    """Keys and tokens that an installation has."""

    def __init__(self) -> None:
        triggers = frozenset({Permission.JOBS_OPERATE})
        self.known = {
            EDITOR: Principal("key:editor000000", "shop", {"acme": Role.EDITOR, "lab": Role.VIEWER}),
            OPERATOR: Principal("key:operator0000", "night shift", {"acme": Role.OPERATOR}),
            PLATFORM: Principal("key:platform0000", "root", platform=True),
            SCOPED: Principal("key:scoped000000", "button", {"acme": Role.ADMIN}, scopes=triggers),
        }
        self.tokens = {
            "one": Principal("oidc:ann", "ann", {"acme": Role.EDITOR}),
            "two": Principal("oidc:bob", "bob", {"acme": Role.EDITOR, "lab": Role.EDITOR}),
            "viewer": Principal("oidc:eve", "eve", {"acme": Role.VIEWER}),
        }
        self.asked: list[str] = []

    def principal_of_key(self, key_id: str) -> Publisher | None:
        return next((Publisher(who, k.secret) for k, who in self.known.items() if k.key_id == key_id), None)

    def authenticate_jwt(self, token: str) -> Principal:
        self.asked.append(token)
        if token not in self.tokens:
            raise AuthenticationError(
                AuthenticationReason.TOKEN_REFUSED, "the token is not accepted", "log in"
            )
        return self.tokens[token]


BOUND = {"dev.submissions": "default", "acme.submissions": "acme", "open.submissions": "*"}


def event(kind: str = CREATE, event_id: str = "e", **data: Any) -> bytes:
    known = {"type": "python", "handler": "a.b"} if kind in {CREATE, UPDATE} else {}
    return render_structured(id=event_id, source="/shop", type=kind, data={**known, **data})


def signed(
    value: bytes,
    key: PublisherKey = EDITOR,
    namespace: str = "acme",
    headers: Any = STRUCTURED_HEADERS,
    **times: float,
) -> list[tuple[str, bytes]]:
    read = parse_event(value, headers)
    covered = SignedEvent(read.source, read.id, read.type, read.sequence, value)
    given = {"now": NOW.timestamp(), "valid_seconds": 3600, **times}
    return [*headers, signature_header(key, covered, namespace=namespace, **given)]


def record(
    value: bytes, headers: Any = None, topic: str = "t.submissions", offset: int = 0, stamp: Any = None
) -> Record:
    at = 0 if stamp is None else int(stamp * 1000)
    return Record(topic, 3, offset, 1, None, value, at, headers, stamp is not None)


def checked(*records: Record, keys: Keys | None = None, context: BatchContext | None = None) -> CheckedBatch:
    authorizer = Authorizer(BOUND, keys or Keys())
    return check(NOBODY, list(records), MOMENT, authorizer=authorizer, max_bytes=10_000, context=context)


def refused(one: Record, keys: Keys | None = None) -> tuple[str, str, str]:
    """Return reason, pointer and message of the only refusal."""
    batch = checked(one, keys=keys)
    ((rejected, _),) = batch.refused
    assert not batch.requests
    (problem,) = rejected.refused.errors
    return rejected.reason, problem.pointer, problem.message


def unauthorised(one: Record, told: str, pointer: str = "", keys: Keys | None = None) -> None:
    reason, where, message = refused(one, keys)
    assert (reason, where) == ("unauthorised", pointer)
    assert told in message


# -- topics ------------------------------------------------------------------------------------------------


def test_without_signature_token_and_binding_nothing_is_taken():
    unauthorised(record(event()), "the event has no signature or token")


def test_an_event_of_a_bound_topic_acts_in_its_namespace():
    (request,) = checked(record(event(), topic="acme.submissions")).requests
    assert request.submission.spec.namespace == "acme"
    assert request.within == frozenset({"acme"})
    assert request.event.scope == "acme"


@pytest.mark.parametrize("kind", [CREATE, UPDATE, CANCEL, PAUSE, RESUME, TRIGGER])
def test_a_bound_topic_gives_no_other_namespace(kind):
    value = event(
        kind, name="x", namespace="lab", **({"schedule": "@daily"} if kind in {CREATE, UPDATE} else {})
    )
    unauthorised(record(value, topic="acme.submissions"), 'not act in namespace "lab"', "/data/namespace")


def test_a_topic_bound_to_all_namespaces_takes_any():
    (request,) = checked(record(event(namespace="lab"), topic="open.submissions")).requests
    assert (request.within, request.event.scope) == (None, "")


def test_a_bad_signature_is_not_made_up_for_by_the_topic():
    value = event()
    headers = signed(value, REVOKED)
    unauthorised(record(value, headers, topic="acme.submissions"), "its key is unknown, revoked")


# -- signatures --------------------------------------------------------------------------------------------


def test_a_signed_event_is_taken_and_means_the_signed_namespace():
    value = event()
    batch = checked(record(value, signed(value)))
    (request,) = batch.requests
    assert request.submission.spec.namespace == "acme"
    assert request.within == frozenset({"acme"})
    assert batch.signers[0].id == "key:editor000000"


def test_binary_content_mode_is_signed_alike():
    value, headers = render_binary(
        id="x", source="/shop", type=CREATE, sequence=4, data={"type": "python", "handler": "a.b"}
    )
    made = signed(value, headers=headers)
    (request,) = checked(record(value, made)).requests
    assert request.event.sequence == 4
    altered = [(name, b"5" if name == "ce_sequence" else text) for name, text in made]
    unauthorised(record(value, altered), "it does not match")


@pytest.mark.parametrize(
    ("name", "text"), [("ce_id", b"y"), ("ce_source", b"/lab"), ("ce_type", CANCEL.encode())]
)
def test_no_attribute_of_a_binary_event_can_be_exchanged(name, text):
    value, headers = render_binary(
        id="x", source="/shop", type=CREATE, data={"type": "python", "handler": "a.b"}
    )
    altered = [(key, text if key == name else old) for key, old in signed(value, headers=headers)]
    unauthorised(record(value, altered), "it does not match")


def test_an_altered_value_does_not_fit():
    unauthorised(record(event(name="b"), signed(event(name="a"))), "it does not match")


def test_a_signature_for_one_namespace_is_none_for_another():
    value = event(namespace="lab")
    unauthorised(record(value, signed(value)), 'not act in namespace "lab"', "/data/namespace")


def test_a_key_signs_for_its_namespaces_alone():
    value = event(namespace="other")
    unauthorised(
        record(value, signed(value, namespace="other")), "'shop' may not do this in namespace 'other'"
    )
    value = event(namespace="lab")
    unauthorised(record(value, signed(value, namespace="lab")), "'shop' may not do this in namespace 'lab'")


def test_a_platform_key_signs_for_any_but_each_signature_for_one():
    value = event(namespace="other")
    (request,) = checked(record(value, signed(value, PLATFORM, "other"))).requests
    assert request.within == frozenset({"other"})


@pytest.mark.parametrize(
    ("kind", "data", "key", "taken"),
    [
        (CREATE, {}, OPERATOR, False),
        (UPDATE, {"job_id": JOB}, OPERATOR, False),
        (CANCEL, {"job_id": JOB}, OPERATOR, False),
        (PAUSE, {"job_id": JOB}, OPERATOR, True),
        (RESUME, {"job_id": JOB}, OPERATOR, True),
        (TRIGGER, {"job_id": JOB}, OPERATOR, True),
        (TRIGGER, {"job_id": JOB, "payload": {"url": "https://example.com/"}}, OPERATOR, False),
        (TRIGGER, {"name": "nightly", "payload": None}, SCOPED, False),
        (CANCEL_RUNS, {"run_ids": [JOB]}, OPERATOR, True),
        (CREATE, {}, SCOPED, False),
        (TRIGGER, {"name": "nightly"}, SCOPED, True),
        (CANCEL_RUNS, {"run_ids": [JOB]}, SCOPED, False),
        (CANCEL, {"job_id": JOB}, EDITOR, True),
        (CANCEL_RUNS, {"run_ids": [JOB]}, EDITOR, True),
    ],
)
def test_each_kind_of_event_needs_what_its_route_needs(kind, data, key, taken):
    value = event(kind, **data)
    batch = checked(record(value, signed(value, key)))
    assert len(batch.requests) == taken
    assert [reason.reason for reason, _ in batch.refused] == ([] if taken else ["unauthorised"])
    assert all(request.within == frozenset({"acme"}) for request in batch.requests)


def test_a_report_on_a_run_brings_its_own_token():
    value = event(COMPLETE_RUN, run_id=JOB, token="t" * 43, outcome="succeeded")
    (request,) = checked(record(value)).requests
    assert request.submission.run_id == UUID(JOB)
    assert request.within is None


def test_an_unknown_type_is_judged_after_its_sender():
    value = event("noonmark.job.fly.v1")
    unauthorised(record(value), "the event has no signature or token")
    assert refused(record(value, signed(value)))[0] == "invalid"


def test_who_may_not_act_learns_nothing_about_the_document():
    value = event(namespace="lab", color="red")
    unauthorised(record(value, topic="acme.submissions"), "lab", "/data/namespace")


# -- time --------------------------------------------------------------------------------------------------


def test_expiry_is_judged_by_the_brokers_stamp_where_no_publisher_can_set_it():
    value = event()
    headers = signed(value, now=NOW.timestamp() - 48 * 3600, valid_seconds=3600)
    in_time = NOW.timestamp() - 47.5 * 3600
    assert checked(record(value, headers, stamp=in_time)).requests, "intake was away for two days"
    unauthorised(record(value, headers, stamp=NOW.timestamp()), "it expired")
    unauthorised(record(value, headers), "it expired")


def test_expiry_by_first_reading_does_not_turn_when_a_batch_is_checked_again():
    value = event()
    headers = signed(value, now=NOW.timestamp() - 3000, valid_seconds=1000)
    earlier = BatchContext(NOW.timestamp() - 2500)
    assert checked(record(value, headers), context=earlier).requests
    assert not checked(record(value, headers)).requests


def test_a_signature_for_longer_than_a_day_is_refused():
    value = event()
    unauthorised(record(value, signed(value, valid_seconds=2 * 86_400)), "86400 s are allowed")


# -- tokens ------------------------------------------------------------------------------------------------


def test_a_token_of_the_provider_lets_in():
    batch = checked(record(event(), [("noonmark-jwt", b"one")]))
    (request,) = batch.requests
    assert request.submission.spec.namespace == "acme"
    assert (request.within, request.event.scope) == (frozenset({"acme"}), "acme")
    assert batch.signers[0].id == "oidc:ann"


def test_a_token_for_several_namespaces_names_one_in_the_document():
    taken = record(event(namespace="lab"), [("noonmark-jwt", b"two")])
    (request,) = checked(taken).requests
    assert request.within == frozenset({"acme", "lab"})
    assert request.event.scope == "oidc:bob"
    unauthorised(record(event(), [("noonmark-jwt", b"two")]), 'namespace "default"', "/data/namespace")
    by_id = record(event(PAUSE, job_id=JOB), [("noonmark-jwt", b"two")])
    assert checked(by_id).requests[0].within == frozenset({"acme", "lab"})


def test_a_token_that_is_not_accepted_or_may_not_is_refused():
    unauthorised(record(event(), [("noonmark-jwt", b"forged")]), "the token is not accepted")
    unauthorised(record(event(), [("noonmark-jwt", b"viewer")]), "'eve' may not do this in any namespace")


def test_a_token_stays_good_when_its_batch_is_checked_again():
    keys = Keys()
    batch = checked(record(event(), [("noonmark-jwt", b"one")]), keys=keys)
    del keys.tokens["one"]
    assert checked(*batch.records, keys=keys, context=batch.context).requests
    assert keys.asked == ["one"]


# -- what has no place on Kafka ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        ("authorization", b"Bearer abc"),
        ("Authorization", SOME_KEY.encode()),
        ("x-api-key", b"abc"),
        ("anything", b"token=" + SOME_KEY.encode()),
        ("noonmark-jwt", SOME_KEY.encode()),
        ("noonmark-signature", EDITOR.text.encode()),
    ],
)
def test_a_credential_is_refused_on_any_topic_and_not_kept(header):
    value = event(note="my key is " + SOME_KEY, name=EDITOR.text)
    ((rejected, _),) = checked(record(value, [header], topic="open.submissions")).refused
    assert rejected.reason == "unauthorised"
    assert "revoke it" in str(rejected.refused)
    assert "S3cret" not in repr(rejected)
    assert EDITOR.secret.hex() not in repr(rejected)
    assert rejected.value.startswith(b'{"specversion"')


def test_a_key_is_masked_wherever_a_refused_event_has_it():
    value = event(event_id=SOME_KEY, max_retries=SOME_KEY, namespace="lab")
    for topic in ("open.submissions", "acme.submissions", "t.submissions"):
        ((rejected, _),) = checked(record(value, topic=topic)).refused
        assert "S3cret" not in repr(rejected)
        assert rejected.event_id == "nm*_********"
    large = record(value + b" " * 10_000)
    assert "S3cret" not in repr(checked(large).refused[0])


@pytest.mark.parametrize(
    "headers",
    [
        [("noonmark-jwt", b"one"), ("noonmark-jwt", b"one")],
        [("noonmark-jwt", b"one"), ("Noonmark-Signature", b"v1")],
    ],
)
def test_one_credential_is_enough(headers):
    unauthorised(record(event(), headers), "more than one signature or token")


@pytest.mark.parametrize("raw", [None, b"x" * 20_000])
@pytest.mark.parametrize("name", ["noonmark-signature", "noonmark-jwt"])
def test_an_unreadable_credential_is_refused(name, raw):
    unauthorised(
        record(event(), [(name, raw)], topic="open.submissions"), f"the header {name} cannot be read"
    )


# -- audit -------------------------------------------------------------------------------------------------


def test_what_a_signer_may_not_do_is_written_down_once_and_strangers_are_not_named():
    denied, forged = event(namespace="lab", event_id="d"), event(event_id="f")
    batch = checked(
        record(denied, signed(denied), offset=1),
        record(forged, signed(event(event_id="g")), offset=2),
        record(event(), offset=3),
    )
    new = {(one.topic, one.partition, one.offset) for one, _ in batch.refused}
    (entry,) = audit_entries(batch, None, new)
    assert (entry.actor, entry.actor_name, entry.action) == ("key:editor000000", "shop", "job.create")
    assert (entry.outcome, entry.request_id, entry.address) == (Outcome.DENIED, "d", "t.submissions/3/1")
    assert audit_entries(batch, None, set()) == []


def test_a_namespace_that_is_no_text_is_the_documents_problem():
    value = event(namespace=["acme"])
    assert refused(record(value, topic="acme.submissions"))[:2] == ("invalid", "/data/namespace")
