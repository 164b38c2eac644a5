"""`noonmark submit`: job documents and whole events from a file, published to Kafka."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noonmark.cli.connections.context import kafka_config, operator_settings
from noonmark.cli.terminal.options import AsJson
from noonmark.cli.terminal.output import field, show_json, show_list
from noonmark.cli.terminal.problems import CliError, ExitCode, broker_away

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

    from noonmark.settings import Settings

_LOOK_SECONDS = 5.0
_SEND_SECONDS = 15.0


def submit(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-",
            help="Job documents or whole CloudEvents: YAML (one or several documents), one JSON object, a"
            " list, or one per line; - is stdin.",
        ),
    ],
    *,
    source: Annotated[
        str, typer.Option(help="`source` of the events that documents become.")
    ] = "noonmark-cli",
    namespace: Annotated[
        str, typer.Option(help="What NOONMARK_PUBLISHER_KEY signs for where a document names no namespace.")
    ] = "default",
    bulk: Annotated[
        bool, typer.Option("--bulk", help="Publish behind everybody else's submissions.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only check the documents as intake does; nothing is published.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Publish job documents to Kafka, as intake takes them from any client.

    A document makes a job. An object with `specversion` is a whole event, published as it stands: that is how
    jobs are updated, paused, resumed, triggered and cancelled. `noonmark job list` shows what became of each,
    `noonmark rejection list` those that were refused. A dry run ends with exit code 1 if any would be.
    """
    documents = read_documents(file)
    settings = operator_settings()
    if dry_run:
        from noonmark.cli.submissions.check import check_documents  # noqa: PLC0415

        check_documents(settings, documents, source=source, as_json=as_json)
        return
    sent = publish(settings, documents, source=source, bulk=bulk, namespace=namespace)
    if as_json:
        show_json({"items": sent})
        return
    show_list(sent, _COLUMNS)
    print(
        f"\n{len(sent)} published; `noonmark job list` and `noonmark run list` show what becomes of them,"
        " `noonmark rejection list` what is refused"
    )


_COLUMNS = (
    field("id", "EVENT", elastic=True),
    field("type", "ASKS FOR"),
    field("job", elastic=True),
    field("position", "PUBLISHED AT"),
)


def read_documents(file: str) -> list[dict[str, Any]]:
    """Read job documents or events, at least one: YAML, a JSON object, a list of them, or one per line.

    Raises:
        CliError: the file cannot be read, is none of these, or is empty.
    """
    from noonmark.cli.schedules.files import read_file  # noqa: PLC0415
    from noonmark.cli.schedules.problems import InputError  # noqa: PLC0415

    place = "standard input" if file == "-" else file
    try:
        items = read_file(file).items
    except InputError as error:
        raise CliError(error.message, ExitCode.USAGE) from error
    documents = []
    for number, item in enumerate(items, start=1):
        if isinstance(item, InputError):
            raise CliError(item.message, ExitCode.USAGE) from item
        if not isinstance(item, dict):
            raise CliError(f"{place}: document {number} is not an object", ExitCode.USAGE)
        documents.append(item)
    return documents


def as_json_text(document: object, number: int) -> bytes:
    """Return a document as JSON: YAML can hold what JSON has no form for.

    Raises:
        CliError: it holds such a thing.
    """
    try:
        return json.dumps(document).encode()
    except (TypeError, ValueError, RecursionError) as error:
        told = str(error) if isinstance(error, TypeError) else "it holds itself, or is nested too deeply"
        raise CliError(f"document {number} has no JSON form: {told}", ExitCode.USAGE) from error


def publish(
    settings: Settings,
    documents: Sequence[dict[str, Any]],
    *,
    source: str,
    bulk: bool = False,
    namespace: str = "default",
) -> list[dict[str, Any]]:
    """Publish job documents as create events, and whole events as they stand; wait until the broker has all.

    Args:
        settings: the address of Kafka, and the key to sign with, if there is one.
        documents: job documents and events.
        source: of the events that documents become.
        bulk: behind everybody else's.
        namespace: what is signed for where a document names none.

    Returns:
        Event id, source, type, job and position (topic/partition/offset) of each, in order.

    Raises:
        CliError: an event is none, and nothing was published; or one was not taken by the broker, and those
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
            "job": _job_of(event),
            "position": position,
        }
        for event, position in zip(events, positions, strict=True)
    ]


def event_of(document: dict[str, Any], number: int, source: str) -> dict[str, Any]:
    """Return the event that a document becomes; an event stays what it is.

    What it says about the job is left to intake, as with any other client.

    Args:
        document: job document, or an event: an object with `specversion`.
        number: its place in the input, from 1, for the message.
        source: `source` of the event that a document becomes.

    Raises:
        CliError: it is an event, and its attributes are wrong.
    """
    from noonmark.schemas.events.envelope import STRUCTURED_HEADERS, parse_event  # noqa: PLC0415
    from noonmark.schemas.events.submissions import TYPES  # noqa: PLC0415
    from noonmark.schemas.problems.refusal import Refused  # noqa: PLC0415

    if "specversion" not in document:
        return create_of(document, source)
    value = as_json_text(document, number)
    try:
        # How large an event may be is a setting of the intake's.
        event = parse_event(value, STRUCTURED_HEADERS, max_bytes=len(value))
    except Refused as refused:
        raise CliError(f"event {number} is not one that is taken: {refused}", ExitCode.USAGE) from refused
    if event.type not in TYPES:
        raise CliError(
            f"event {number} is not one that is taken: /type: {event.type!r} is no submission;"
            f" expected one of {', '.join(TYPES)}",
            ExitCode.USAGE,
        )
    return document


def create_of(document: dict[str, Any], source: str) -> dict[str, Any]:
    """Return the event that makes the job of a document."""
    from noonmark.core.ids import uuid7  # noqa: PLC0415
    from noonmark.schemas.events.submissions import CREATE  # noqa: PLC0415

    head = {"specversion": "1.0", "id": str(uuid7()), "source": source, "type": CREATE}
    return {**head, "datacontenttype": "application/json", "data": document}


def _record(
    settings: Settings, event: dict[str, Any], number: int, namespace: str
) -> tuple[bytes, bytes, Sequence[tuple[str, bytes]]]:
    """Return key, value and headers of an event's record, signed where there is a key to sign with.

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
    place = str(event["data"].get("namespace") or namespace)
    try:
        header = signature_header(key, signed, namespace=place, now=time.time())
    except SubmissionSignatureError as error:
        raise CliError(f"document {number} cannot be signed: {error}", ExitCode.USAGE) from error
    return key_of(event), value, [*STRUCTURED_HEADERS, header]


def key_of(event: dict[str, Any]) -> bytes:
    """Keep events of one job in one partition, and so in order: by its name, else by its id."""
    data = event["data"]
    if data.get("name"):
        return f"{data.get('namespace') or 'default'}/{data['name']}".encode("utf-8", "replace")
    return str(data.get("job_id") or data.get("run_id") or event["id"]).encode("utf-8", "replace")


def word_of(event_type: str) -> str:
    """Return what an event asks for in one word, such as `create`."""
    return event_type.removeprefix("noonmark.job.").partition(".v")[0]


def _job_of(event: dict[str, Any]) -> object:
    return event["data"].get("name") or event["data"].get("job_id")


def send(
    settings: Settings, topic: str, records: Sequence[tuple[bytes, bytes, Sequence[tuple[str, bytes]]]]
) -> list[str]:
    """Send records and wait for every acknowledgement; return their positions, in order.

    Raises:
        CliError: the broker does not answer, or refused a record.
    """
    from confluent_kafka import KafkaException, Producer  # noqa: PLC0415

    positions: dict[int, str] = {}
    errors: list[str] = []

    def note(index: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            errors.append(error.str())
        else:
            positions[index] = f"{message.topic()}/{message.partition()}/{message.offset()}"

    producer = Producer(
        kafka_config(settings).client(client_id="noonmark-cli")
        | {"enable.idempotence": True, "message.timeout.ms": int(_SEND_SECONDS * 1000)}
    )
    try:
        # A broker that is away is noticed here, and not after the time that a message may take.
        producer.list_topics(topic, timeout=_LOOK_SECONDS)
        for index, (key, value, headers) in enumerate(records):
            producer.produce(
                topic,
                value,
                key,
                headers=list(headers),
                on_delivery=partial(note, index),
            )
            producer.poll(0)
        left = producer.flush(_SEND_SECONDS + 5)
    except KafkaException as error:
        raise broker_away(settings.kafka_bootstrap, error.args[0].str()) from error
    if errors or left:
        raise broker_away(settings.kafka_bootstrap, errors[0] if errors else f"{left} records got no answer")
    return [positions[index] for index in range(len(records))]
