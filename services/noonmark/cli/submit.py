"""`noonmark submit`: job documents from a file, published as events."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noonmark.cli.context import kafka_config, operator_settings
from noonmark.cli.options import AsJson
from noonmark.cli.output import show_json
from noonmark.cli.problems import CliError, ExitCode, broker_away

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

    from noonmark.settings import Settings

_LOOK_SECONDS = 5.0
_SEND_SECONDS = 15.0


def submit(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-", help="Job documents: one object, a list, or one per line; - is stdin."
        ),
    ],
    source: Annotated[str, typer.Option(help="`source` of the events.")] = "noonmark-cli",
    bulk: Annotated[
        bool, typer.Option("--bulk", help="Publish behind everybody else's submissions.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Publish job documents to Kafka, as intake takes them from any client.

    `noonmark job list` shows what became of each, `noonmark rejection list` those that were refused.
    """
    documents = list(read_documents(file))
    settings = operator_settings()
    sent = publish(settings, documents, source=source, bulk=bulk)
    if as_json:
        show_json({"items": sent})
        return
    for one in sent:
        print(f"{one['id']}  {one['position']}")


def read_documents(file: str) -> Iterator[dict[str, Any]]:
    """Read job documents: one JSON object, a list of them, or one per line.

    Raises:
        CliError: the file cannot be read, or is none of these.
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"{file} cannot be read: {error}", ExitCode.USAGE) from error
    try:
        found = json.loads(text)
    except ValueError:
        yield from _read_lines(file, text)
        return
    for index, document in enumerate(found if isinstance(found, list) else [found]):
        if not isinstance(document, dict):
            raise CliError(f"{file}: document {index + 1} is not a JSON object", ExitCode.USAGE)
        yield document


def _read_lines(file: str, text: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except ValueError as error:
            raise CliError(f"{file}: line {number} is not JSON: {error}", ExitCode.USAGE) from error
        if not isinstance(document, dict):
            raise CliError(f"{file}: line {number} is not a JSON object", ExitCode.USAGE)
        yield document


def publish(
    settings: Settings, documents: Sequence[dict[str, Any]], *, source: str, bulk: bool = False
) -> list[dict[str, Any]]:
    """Publish job documents as create events and wait until the broker has them all.

    Returns:
        Event id, source and position (topic/partition/offset) of each, in order.

    Raises:
        CliError: a document was not taken; those before it may have been.
    """
    from noonmark.core.ids import uuid7  # noqa: PLC0415
    from noonmark.kafka.topics import Topics  # noqa: PLC0415
    from noonmark.schemas.envelope import STRUCTURED_HEADERS, render_structured  # noqa: PLC0415
    from noonmark.schemas.submissions import CREATE  # noqa: PLC0415

    topics = Topics(settings.topic_prefix)
    records = []
    for document in documents:
        event_id = str(uuid7())
        value = render_structured(id=event_id, source=source, type=CREATE, data=document)
        # Events of one job stay in one partition, and so in order.
        key = f"{document.get('namespace', 'default')}/{document.get('name') or event_id}"
        records.append((key.encode(), value, STRUCTURED_HEADERS))
    positions = send(settings, topics.submissions_bulk if bulk else topics.submissions, records)
    ids = [json.loads(value)["id"] for _, value, _ in records]
    return [
        {"id": event_id, "source": source, "position": position}
        for event_id, position in zip(ids, positions, strict=True)
    ]


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
