"""Checks records of a submission topic: each becomes a request, or a refusal with its reason."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Final

import psycopg

from noonmark.core.access.roles import Principal
from noonmark.intake.authorization import Authorizer, BatchContext, Unauthorized
from noonmark.intake.event_batches import BatchedRecord, is_batch, split
from noonmark.intake.key_masking import without_keys
from noonmark.kafka.consumers.consumer import BatchConsumer
from noonmark.kafka.consumers.records import UNREADABLE_HEADERS, Record
from noonmark.schemas.events.envelope import Event, identify, parse_event
from noonmark.schemas.events.submissions import TYPES, CancelRuns, parse_submission
from noonmark.schemas.problems.refusal import FieldError, Refused
from noonmark.store.jobs.rejections import RejectedRecord
from noonmark.store.jobs.submit import EventRef, Request
from noonmark.store.schedules.time_facts import Moment
from noonmark.telemetry.logs import get_logger

_WORDS: Final = {kind: "_".join(kind.split(".")[1:3]).removeprefix("job_") for kind in TYPES}
"""Metric label of each event type, such as `create` for `noonmark.job.create.v1`."""

UNKNOWN: Final = "unknown"

_MOST_EVENTS: Final = 10_000
"""A transaction takes in no further record after this number of events; only batches of events reach it."""

_log = get_logger()


@dataclass(slots=True)
class CheckedBatch:
    """A batch of records from one consumer; each event in them is either a request or refused.

    Attributes:
        consumer: the consumer that polled the records, and that commits them.
        records: all records of the batch; those that were polled after them are not checked yet.
        moment: the time and facts that they were checked with.
        context: the context of their first check.
        requests: the valid requests, in order.
        sources: the record and type label of each request.
        refused: the refused records, each with its type label.
        signers: principals of authenticated requests, by index in `requests`.
        denied: principals that lacked a permission, by index in `refused`.
        checked_at: when the batch was checked, in `time.monotonic` seconds.
    """

    consumer: BatchConsumer
    records: list[Record]
    moment: Moment
    context: BatchContext
    requests: list[Request] = field(default_factory=list)
    sources: list[tuple[Record, str]] = field(default_factory=list)
    refused: list[tuple[RejectedRecord, str]] = field(default_factory=list)
    signers: dict[int, Principal] = field(default_factory=dict)
    denied: dict[int, Principal] = field(default_factory=dict)
    checked_at: float = field(default_factory=time.monotonic)


def check(
    consumer: BatchConsumer,
    records: list[Record],
    moment: Moment,
    *,
    authorizer: Authorizer,
    max_bytes: int,
    context: BatchContext | None = None,
) -> CheckedBatch:
    """Check a batch of records, or the first ones if they hold many events.

    Args:
        consumer: the consumer that polled the records.
        records: the polled records.
        moment: the database's time, ledger floor and facts.
        authorizer: authorizes the events.
        max_bytes: a larger value is refused without parsing it.
        context: the context of the first check, for a batch that is checked again.

    Raises:
        psycopg.OperationalError: a key is not cached, and the database is unavailable.
    """
    batch = CheckedBatch(consumer, records, moment, context or BatchContext(moment.now.timestamp()))
    for place, record in enumerate(records):
        if len(batch.requests) + len(batch.refused) >= _MOST_EVENTS:
            batch.records = records[:place]
            break
        if len(record.value) > max_bytes:
            batch.refused.append((_too_large(record, max_bytes), UNKNOWN))
            continue
        if record.headers is UNREADABLE_HEADERS:
            verdict = Refused([FieldError("", "a header's key is not UTF-8", "header keys in UTF-8")])
            batch.refused.append((rejected_record(record, "malformed", verdict), UNKNOWN))
            continue
        if is_batch(record):
            _check_events(batch, record, authorizer, max_bytes)
        else:
            _check_one(batch, record, authorizer, max_bytes)
    return batch


def _check_events(batch: CheckedBatch, record: Record, authorizer: Authorizer, max_bytes: int) -> None:
    try:
        events = split(record)
    except Refused as refused:
        batch.refused.append((rejected_record(record, "malformed", refused), UNKNOWN))
        return
    for event in events:
        _check_one(batch, event, authorizer, max_bytes)


def _check_one(batch: CheckedBatch, record: Record, authorizer: Authorizer, max_bytes: int) -> None:
    event: Event | None = None
    moment = batch.moment
    try:
        event = parse_event(record.value or None, record.headers, max_bytes=max_bytes)
        admitted = authorizer.authorize(record, event, batch.context)
        submission = parse_submission(
            event,
            now=moment.now,
            ledger_floor=moment.ledger_floor,
            facts=moment.facts,
            namespace=admitted.namespace,
        )
    except Unauthorized as refused:
        if refused.principal is not None:
            batch.denied[len(batch.refused)] = refused.principal
        batch.refused.append((rejected_record(record, "unauthorised", refused, event), _word(event)))
    except psycopg.OperationalError:
        # The event may be valid: the batch waits for the database.
        raise
    except Refused as refused:
        reason = "malformed" if event is None else "invalid"
        batch.refused.append((rejected_record(record, reason, refused, event), _word(event)))
    except Exception as error:  # noqa: BLE001 - one record must not stop the others
        place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
        _log.exception("record_not_checked", **place)
        verdict = Refused([FieldError("", f"could not be checked: {type(error).__name__}")])
        batch.refused.append((rejected_record(record, "malformed", verdict, event), _word(event)))
    else:
        _, within, scope, principal = admitted
        if principal is not None:
            batch.signers[len(batch.requests)] = principal
            if isinstance(submission, CancelRuns):
                # Runs store the authenticated principal; the event's source is only a claim of the publisher.
                submission = replace(submission, actor=principal.name)
        ref = EventRef(event.source, event.id, event.sequence, scope)
        batch.requests.append(Request(submission, ref, within))
        batch.sources.append((record, _word(event)))


def rejected_record(
    record: Record, reason: str, refused: Refused, event: Event | EventRef | None = None
) -> RejectedRecord:
    """Build the refusal of a record, with every key in it masked."""
    source, event_id = (event.source, event.id) if event else identify(record.value, record.headers)
    place = (record.topic, record.partition, record.offset)
    found = RejectedRecord(*place, source, event_id, reason, refused, record.value)
    if isinstance(record, BatchedRecord):
        found = replace(found, index=record.index, batch=record.shown)
    return without_keys(found)


def _too_large(record: Record, max_bytes: int) -> RejectedRecord:
    refused = Refused(
        [FieldError("", f"the record is {len(record.value)} bytes", f"at most {max_bytes} bytes")]
    )
    # The value is not parsed to find its id, because the limit exists to avoid that.
    source, event_id = identify(None, record.headers)
    place = (record.topic, record.partition, record.offset)
    return without_keys(RejectedRecord(*place, source, event_id, "too_large", refused, record.value))


def _word(event: Event | None) -> str:
    return _WORDS.get(event.type, UNKNOWN) if event else UNKNOWN
