"""What intake made of published events: `noonmark submit --wait` waits for it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from noonmark.cli.connections.context import kafka_config
from noonmark.cli.terminal.output import printable
from noonmark.cli.terminal.problems import broker_away, field_text

if TYPE_CHECKING:
    from noonmark.client import Client
    from noonmark.settings import Settings

ACCEPTED: Final = "accepted"
REJECTED: Final = "rejected"
PENDING: Final = "pending"

_POLL_SECONDS: Final = 0.2
_CLOCK_DIFFERENCE: Final = timedelta(hours=1)
_PAGE: Final = 200


def wait_for_verdicts(
    settings: Settings, sent: Sequence[Mapping[str, Any]], *, since: datetime, timeout_seconds: float
) -> list[dict[str, Any]]:
    """Wait until intake has judged published events.

    Intake commits the offset of an event only after its verdict is in the database.

    Args:
        settings: the address of Kafka, and of the API or the database.
        sent: what `publish` returned.
        since: an instant before the first event was published.
        timeout_seconds: the maximum wait.

    Returns:
        The same with `result` (`accepted`, also for a duplicate, `rejected`, or `pending` if intake did not
        judge it in time) and `problems`, the rejection's sentences.

    Raises:
        CliError: Kafka, the database or the API is unreachable, or the credential may not read rejections.
    """
    places = {str(one["position"]) for one in sent}
    judged = _await_commits(settings, places, timeout_seconds)
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    problems: dict[str, list[str]] = {}
    if judged:
        with client(settings) as api:
            for source in {str(one["source"]) for one in sent}:
                problems |= _rejections(api, source, judged, since - _CLOCK_DIFFERENCE)
    return [
        {
            **one,
            "result": PENDING
            if one["position"] not in judged
            else REJECTED
            if found is not None
            else ACCEPTED,
            "problems": found or [],
        }
        for one in sent
        for found in [problems.get(str(one["position"]))]
    ]


def _await_commits(settings: Settings, places: set[str], timeout_seconds: float) -> set[str]:
    """Return the positions that intake has passed, all of them unless the time is over."""
    from confluent_kafka import TopicPartition  # noqa: PLC0415

    from noonmark.kafka.lag.group_offsets import GroupOffsets  # noqa: PLC0415
    from noonmark.kafka.topics import Topics  # noqa: PLC0415

    group = Topics(settings.topic_prefix).group_intake
    wanted = {place: _parsed(place) for place in places}
    partitions = [TopicPartition(topic, number) for topic, number in {at[:2] for at in wanted.values()}]
    offsets, deadline = GroupOffsets(kafka_config(settings)), time.monotonic() + timeout_seconds
    try:
        while True:
            read = offsets.read({group: partitions})
            for reason in read.errors.values():
                raise broker_away(settings.kafka_bootstrap, reason)
            passed = {
                place
                for place, (topic, number, offset) in wanted.items()
                if (commit := read.offsets.get((group, topic, number))) is not None and commit.offset > offset
            }
            if passed == places or time.monotonic() >= deadline:
                return passed
            time.sleep(_POLL_SECONDS)
    finally:
        offsets.close()


def _parsed(place: str) -> tuple[str, int, int]:
    topic, partition, offset = place.rsplit("/", 2)
    return topic, int(partition), int(offset)


def _rejections(api: Client, source: str, places: set[str], since: datetime) -> dict[str, list[str]]:
    """Return the problems of those events of a source that were rejected, by position."""
    listed = api.rejections.list(source=source, since=since.astimezone(UTC), limit=_PAGE)
    return {
        place: [printable(field_text(item)) for item in row["errors"]]
        for row in listed
        if (place := f"{row['topic']}/{row['partition']}/{row['offset']}") in places
    }


def problems_of(judged: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Return the problems of rejected events, as lines."""
    for number, one in enumerate(judged, start=1):
        if one["result"] == REJECTED:
            yield printable(f"document {number}" + (f" ({one['job']})" if one["job"] else ""))
            yield from (f"  {problem}" for problem in one["problems"])
