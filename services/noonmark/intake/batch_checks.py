"""From records to requests: every record becomes one, or a refusal that says why."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Final

import psycopg

from noonmark.core.access.roles import Principal
from noonmark.intake.authorization import Authorizer, BatchContext, Unauthorized
from noonmark.intake.key_masking import without_keys
from noonmark.kafka.consumers.consumer import BatchConsumer
from noonmark.kafka.consumers.records import UNREADABLE_HEADERS, Record
from noonmark.schemas.events.envelope import Event, identify, parse_event
from noonmark.schemas.events.submissions import TYPES, CancelRuns, parse_submission
from noonmark.schemas.problems.refusal import FieldError, Refused
from noonmark.service.database_clock import Moment
from noonmark.store.jobs.rejections import RejectedRecord
from noonmark.store.jobs.submit import EventRef, Request
from noonmark.telemetry.logs import get_logger

_WORDS: Final = {kind: "_".join(kind.split(".")[1:3]).removeprefix("job_") for kind in TYPES}
"""Label of each event type: `create` for `noonmark.job.create.v1`, `run_cancel` for that of runs."""

UNKNOWN: Final = "unknown"

_log = get_logger()


@dataclass(slots=True)
class CheckedBatch:
    """A batch of records from one consumer, each either a request or refused.

    Attributes:
        consumer: where they came from and are settled.
        records: all of them.
        moment: what they were checked with.
        context: how they were first read.
        requests: the sound ones, in order.
        sources: per request its record and the word of its type.
        refused: the others, each with the word of its type.
        signers: who signed requests, by their places; a request that nobody signed is not in it.
        denied: who asked for what they may not do, by places in `refused`.
        checked_at: when they were, on the clock of `time.monotonic`.
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
    """Check a batch of records.

    Args:
        consumer: where they came from.
        records: as polled.
        moment: the database's time, ledger floor and facts.
        authorizer: lets events in.
        max_bytes: a larger value is refused unread.
        context: of a batch that is checked again.

    Raises:
        psycopg.OperationalError: somebody's key is not known, and the database is away.
    """
    batch = CheckedBatch(consumer, records, moment, context or BatchContext(moment.now.timestamp()))
    for record in records:
        if len(record.value) > max_bytes:
            batch.refused.append((_too_large(record, max_bytes), UNKNOWN))
            continue
        if record.headers is UNREADABLE_HEADERS:
            verdict = Refused([FieldError("", "a header's key is not UTF-8", "header keys in UTF-8")])
            batch.refused.append((rejected_record(record, "malformed", verdict), UNKNOWN))
            continue
        _check_one(batch, record, authorizer, max_bytes)
    return batch


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
        # Nothing is known against the event: the batch waits for the database.
        raise
    except Refused as refused:
        reason = "malformed" if event is None else "invalid"
        batch.refused.append((rejected_record(record, reason, refused, event), _word(event)))
    except Exception as error:  # noqa: BLE001 - whatever one record does to us, the others are taken in
        place = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
        _log.exception("record_not_checked", **place)
        verdict = Refused([FieldError("", f"could not be checked: {type(error).__name__}")])
        batch.refused.append((rejected_record(record, "malformed", verdict, event), _word(event)))
    else:
        _, within, scope, principal = admitted
        if principal is not None:
            batch.signers[len(batch.requests)] = principal
            if isinstance(submission, CancelRuns):
                # The runs keep who it was; a source is only what a publisher says.
                submission = replace(submission, actor=principal.name)
        ref = EventRef(event.source, event.id, event.sequence, scope)
        batch.requests.append(Request(submission, ref, within))
        batch.sources.append((record, _word(event)))


def rejected_record(
    record: Record, reason: str, refused: Refused, event: Event | EventRef | None = None
) -> RejectedRecord:
    """Say which record is refused and why; of keys that it holds nothing is kept."""
    source, event_id = (event.source, event.id) if event else identify(record.value, record.headers)
    place = (record.topic, record.partition, record.offset)
    return without_keys(RejectedRecord(*place, source, event_id, reason, refused, record.value))


def _too_large(record: Record, max_bytes: int) -> RejectedRecord:
    refused = Refused(
        [FieldError("", f"the record is {len(record.value)} bytes", f"at most {max_bytes} bytes")]
    )
    # Not parsed to find its name: that is what the limit is for.
    source, event_id = identify(None, record.headers)
    place = (record.topic, record.partition, record.offset)
    return without_keys(RejectedRecord(*place, source, event_id, "too_large", refused, record.value))


def _word(event: Event | None) -> str:
    return _WORDS.get(event.type, UNKNOWN) if event else UNKNOWN
