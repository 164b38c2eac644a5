"""`noonmark submit`: publish job documents and events from a file to Kafka."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noonmark.cli.connections.context import kafka_config, operator_settings
from noonmark.cli.submissions.events import as_json_text, event_of, job_of, key_of, word_of
from noonmark.cli.terminal.options import AsJson, duration_option
from noonmark.cli.terminal.output import counted, field, show_json, show_list
from noonmark.cli.terminal.problems import CliError, ExitCode, broker_away, right_missing
from noonmark.core.causes import cause_of

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

    from noonmark.settings import Settings

_METADATA_SECONDS = 5.0
_SEND_SECONDS = 15.0
_CAUSE_SECONDS = 0.5


def submit(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-",
            help="Job documents or CloudEvents: YAML (one or several documents), one JSON object, a JSON"
            " list, or JSON lines; - is stdin.",
        ),
    ],
    *,
    source: Annotated[str, typer.Option(help="`source` of the events for job documents.")] = "noonmark-cli",
    namespace: Annotated[
        str, typer.Option(help="Namespace to sign for, if a document names none.")
    ] = "default",
    bulk: Annotated[
        bool, typer.Option("--bulk", help="Use the bulk topic, which is processed after other submissions.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the documents as intake does, and publish nothing.")
    ] = False,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Wait until intake has accepted or rejected each; exits 1 if not all."),
    ] = False,
    timeout: Annotated[
        float, duration_option("--timeout", help_text="Maximum wait, with --wait", most=3600)
    ] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Publish job documents and events to Kafka.

    A document creates a job. An object with `specversion` is an event and is published unchanged, to update,
    pause, resume, trigger or cancel a job. Intake then accepts or rejects each: `--wait` shows the result,
    and later `noonmark rejection list`. A dry run exits 1 if a document would be rejected.
    """
    documents = read_documents(file)
    settings = operator_settings()
    if dry_run and wait:
        raise CliError("--dry-run publishes nothing to wait for; leave out --wait", ExitCode.USAGE)
    if dry_run:
        from noonmark.cli.submissions.check import check_documents  # noqa: PLC0415

        check_documents(settings, documents, source=source, as_json=as_json)
        return
    began = datetime.now(UTC)
    sent = publish(settings, documents, source=source, bulk=bulk, namespace=namespace)
    if wait:
        _show_verdicts(settings, sent, began, timeout, as_json=as_json)
    elif as_json:
        show_json({"items": sent})
    else:
        show_list(sent, (*_COLUMNS, field("position", "TOPIC/PARTITION/OFFSET")))
        print(
            f"\n{len(sent)} published, but not accepted yet: intake checks each. `noonmark rejection list`"
            " shows what it rejects, `noonmark job list` the jobs; `noonmark submit --wait` waits for both"
        )


_COLUMNS = (
    field("id", "EVENT", elastic=True),
    field("type", "REQUEST"),
    field("job", elastic=True),
)


def _show_verdicts(
    settings: Settings, sent: Sequence[dict[str, Any]], began: datetime, timeout: float, *, as_json: bool
) -> None:
    """Wait for intake and print its verdicts.

    Raises:
        typer.Exit: an event was rejected, or not judged in time.
    """
    from noonmark.cli.submissions.verdicts import (  # noqa: PLC0415
        ACCEPTED,
        PENDING,
        REJECTED,
        problems_of,
        wait_for_verdicts,
    )

    judged = wait_for_verdicts(settings, sent, since=began, timeout_seconds=timeout)
    count = Counter(one["result"] for one in judged)
    if as_json:
        show_json({"items": judged, **{name: count[name] for name in (ACCEPTED, REJECTED, PENDING)}})
    else:
        show_list(judged, (*_COLUMNS, field("result")))
        for line in problems_of(judged):
            print(line)
        print(f"\n{count[ACCEPTED]} accepted, {count[REJECTED]} rejected")
        if count[PENDING]:
            print(
                f"intake has not judged {counted(count[PENDING], 'event')} after {timeout:g} s:"
                " check that it runs (`noonmark lag`), then see `noonmark rejection list`",
                file=sys.stderr,
            )
    if count[ACCEPTED] < len(judged):
        raise typer.Exit(ExitCode.PROBLEM)


def read_documents(file: str) -> list[dict[str, Any]]:
    """Read at least one job document or event: YAML, a JSON object, a list, or JSON lines.

    Raises:
        CliError: the file cannot be read, has another form, or is empty.
    """
    from noonmark.cli.schedules.files import read_file  # noqa: PLC0415
    from noonmark.cli.schedules.problems import InputError  # noqa: PLC0415
    from noonmark.cli.submissions.shown_jobs import documents_in  # noqa: PLC0415

    label = "standard input" if file == "-" else file
    try:
        items = read_file(file).items
    except InputError as error:
        raise CliError(error.message, ExitCode.USAGE) from error
    documents = []
    for number, item in enumerate(items, start=1):
        if isinstance(item, InputError):
            raise CliError(item.message, ExitCode.USAGE) from item
        for found in documents_in(item):
            if found.problem:
                raise CliError(f"{label}: document {number} {found.problem}", ExitCode.USAGE)
            if not isinstance(found.document, dict):
                raise CliError(f"{label}: document {number} is not an object", ExitCode.USAGE)
            documents.append(found.document)
    return documents


def publish(
    settings: Settings,
    documents: Sequence[dict[str, Any]],
    *,
    source: str,
    bulk: bool = False,
    namespace: str = "default",
) -> list[dict[str, Any]]:
    """Publish job documents as create events, and events unchanged; wait for all acknowledgements.

    Args:
        settings: the address of Kafka and the publisher key, if any.
        documents: job documents and events.
        source: source of the events for job documents.
        bulk: use the bulk topic.
        namespace: namespace to sign for if a document names none.

    Returns:
        Event id, source, type, job and position (topic/partition/offset) of each, in order.

    Raises:
        CliError: an event is invalid, and nothing was published; or the broker did not accept one, and those
            before it may have been.
    """
    from noonmark.kafka.topics import Topics  # noqa: PLC0415

    events = [event_of(document, number, source) for number, document in enumerate(documents, start=1)]
    records = [_record(settings, event, number, namespace) for number, event in enumerate(events, start=1)]
    topics = Topics(settings.topic_prefix)
    positions = send(settings, topics.submissions_bulk if bulk else topics.submissions, records)
    return [
        {
            "id": event["id"],
            "source": event["source"],
            "type": word_of(event["type"]),
            "job": job_of(event),
            "position": position,
        }
        for event, position in zip(events, positions, strict=True)
    ]


def _record(
    settings: Settings, event: dict[str, Any], number: int, namespace: str
) -> tuple[bytes, bytes, Sequence[tuple[str, bytes]]]:
    """Return key, value and headers of an event's record, signed if there is a publisher key.

    Raises:
        CliError: the event cannot be signed.
    """
    from noonmark.core.access.submission_signature import (  # noqa: PLC0415
        PublisherKey,
        SignedEvent,
        SubmissionSignatureError,
        signature_header,
    )
    from noonmark.schemas.events.envelope import STRUCTURED_HEADERS, parse_event  # noqa: PLC0415

    value = as_json_text(event, number)
    if not settings.publisher_key:
        return key_of(event), value, STRUCTURED_HEADERS
    read = parse_event(value, STRUCTURED_HEADERS, max_bytes=len(value))
    signed = SignedEvent(read.source, read.id, read.type, read.sequence, value)
    key = PublisherKey.parse(settings.publisher_key.get_secret_value())
    signed_namespace = str(event["data"].get("namespace") or namespace)
    try:
        header = signature_header(key, signed, namespace=signed_namespace, now=time.time())
    except SubmissionSignatureError as error:
        raise CliError(f"cannot sign document {number}: {error}", ExitCode.USAGE) from error
    return key_of(event), value, [*STRUCTURED_HEADERS, header]


def send(
    settings: Settings, topic: str, records: Sequence[tuple[bytes, bytes, Sequence[tuple[str, bytes]]]]
) -> list[str]:
    """Send records and wait for every acknowledgement; return their positions, in order.

    Raises:
        CliError: cannot connect to Kafka, or a broker rejected a record.
    """
    from confluent_kafka import KafkaException, Producer  # noqa: PLC0415

    positions: dict[int, str] = {}
    errors: list[KafkaError] = []

    def on_delivery(index: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            errors.append(error)
        else:
            positions[index] = f"{message.topic()}/{message.partition()}/{message.offset()}"

    producer = Producer(
        kafka_config(settings).client(client_id="noonmark-cli")
        | {"enable.idempotence": True, "message.timeout.ms": int(_SEND_SECONDS * 1000)}
    )
    left = len(records)
    try:
        # An unreachable broker is detected here, and not only after the message timeout.
        producer.list_topics(topic, timeout=_METADATA_SECONDS)
        for index, (key, value, headers) in enumerate(records):
            noted = partial(on_delivery, index)
            producer.produce(topic, value, key, headers=list(headers), on_delivery=noted)
            producer.poll(0)
        left = producer.flush(_SEND_SECONDS + 5)
    except (KafkaException, SystemError) as error:
        # It comes first: records that fail because the producer has ended say only that it has.
        if (found := cause_of(error, KafkaException)) is None:
            raise
        errors.insert(0, found.args[0])
    if errors:
        errors[:0] = _causes(producer)
    if errors or left:
        raise _unsent(settings.kafka_bootstrap, topic, errors, left)
    return [positions[index] for index in range(len(records))]


def _causes(producer: Producer) -> list[KafkaError]:
    """Return what has ended a producer: it can come after the errors of the records that fail for it."""
    from confluent_kafka import KafkaException  # noqa: PLC0415

    try:
        producer.poll(_CAUSE_SECONDS)
    except (KafkaException, SystemError) as error:
        found = cause_of(error, KafkaException)
        return [found.args[0]] if found is not None else []
    return []


def _unsent(bootstrap: str, topic: str, errors: Sequence[KafkaError], left: int) -> CliError:
    """Return the error of records that Kafka did not take; one that names a missing right goes first."""
    from noonmark.kafka.refusals import refusal  # noqa: PLC0415
    from noonmark.kafka.rights import Operation  # noqa: PLC0415

    missing = [told for error in errors if (told := refusal(error, Operation.WRITE, topic=topic))]
    if missing:
        return right_missing(bootstrap, missing[0])
    return broker_away(bootstrap, errors[0].str() if errors else f"{left} records were not acknowledged")
