"""Collects the events about runs from the outbox and from Kafka, and says which runs they can judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from noonmark.cli.verify.coverage import Coverage
from noonmark.cli.verify.event_store import EventStore
from noonmark.cli.verify.pacing import Pacer
from noonmark.core.states import RunState
from noonmark.core.transitions import TERMINAL, VERDICTS
from noonmark.kafka.consumers.ranges import RangeReader
from noonmark.kafka.topics import Topics
from noonmark.store.verify.reader import LedgerReader, Span
from noonmark.verify import History
from noonmark.verify.events import read_death, read_outcomes
from noonmark.verify.history import Death, LifecycleRecord, Run, Sighting

_LEAD: Final = timedelta(hours=1)
"""A run can be planned, and cancelled or skipped, this long before its instant."""
_ROWS: Final = 50
"""Rows of the outbox in a step: an event has up to 900 kB."""
_ALL: Final = ""


@dataclass(slots=True)
class EventCounts:
    """What was read and compared.

    Attributes:
        records: of Kafka and the outbox.
        unreadable: records of them that are no events of noonmark.
        outcomes: the number of outcomes about runs of the window.
        compared: runs whose outcome was compared with its event.
        not_compared: ended runs whose event may have been removed, or was written after the check began.
    """

    records: int = 0
    unreadable: int = 0
    outcomes: int = 0
    compared: int = 0
    not_compared: int = 0


class EventLog:
    """The events about the runs of a window.

    Args:
        store: where events are kept.
        topics: the names of the topics.
        since: the first instant of the window.
        until: the first instant after the window.
    """

    def __init__(self, store: EventStore, topics: Topics, since: datetime, until: datetime) -> None:
        self._store = store
        self._topics = topics
        self._since, self._until = since, until
        self._outcomes_from = Coverage(since - _LEAD, keyed=True)
        self._deaths_from = Coverage(since - _LEAD, keyed=False)
        self._complete_until = since
        self.counts = EventCounts()

    def collect(
        self,
        ledger: LedgerReader,
        kafka: RangeReader,
        pacer: Pacer,
        *,
        settled: datetime,
        progress: Callable[[str], None],
    ) -> None:
        """Read all events: first what the outbox has, then Kafka up to its end.

        Args:
            ledger: outside of a step.
            kafka: of the lifecycle topic and that of dead letters; not open yet.
            pacer: bounds the share of the time that steps take.
            settled: events of outcomes before this instant are in the outbox or in Kafka.
            progress: called with what was done.

        Raises:
            KafkaException: Kafka does not answer.
        """
        self._complete_until = settled
        self._read_outbox(ledger, pacer)
        # A row that has left the outbox meanwhile is before the ends that are noted now.
        with pacer.step():
            kafka.open(self._since - _LEAD)
        for topic, coverage in (
            (self._topics.lifecycle, self._outcomes_from),
            (self._topics.dead, self._deaths_from),
        ):
            coverage.open({place: one for place, one in kafka.ranges.items() if place[0] == topic})
        while not kafka.is_done:
            with pacer.step():
                messages = kafka.read()
            for message in messages:
                self._take(message)
            progress(f"{self.counts.records:,} records of events read")

    def with_events(self, history: History, span: Span) -> History:
        """Return the history with what events say about its runs."""
        found = self._store.about(span.day, span.after, span.last, [run.id for run in history.runs])
        final = (one for one in found.outcomes if one.state in TERMINAL)
        return replace(
            history,
            lifecycle=found.outcomes,
            deaths=found.deaths,
            sightings=[Sighting(one.run, one.state, one.fence) for one in final],
        )

    def about_others(self, runs: Sequence[Run], span: Span) -> list[LifecycleRecord]:
        """Return the verdicts that were announced of other runs of a step, which the ledger must have.

        Verdicts before the comparison starts may be those of an installation that used the topic before.
        """
        found = self._store.about_others(span.day, span.after, span.last, [run.id for run in runs])
        return [one for one in found if one.state in VERDICTS and self._is_compared(one)]

    def is_announced(self, run: Run) -> bool:
        """Whether the event of the run's outcome must have been read."""
        return self._is_compared(run)

    def is_whole(self, run: Run) -> bool:
        """Whether every event about the run must have been read."""
        since = self._outcomes_from.since(run.namespace)
        created = created_at(run.id)
        return self.is_announced(run) and since is not None and created is not None and since <= created

    def has_death(self, run: Run) -> bool:
        """Whether the dead letter event of the run must have been read, if the run is dead."""
        since = self._deaths_from.since(_ALL)
        return run.state != RunState.DEAD or (
            since is not None
            and run.finished_at is not None
            and since <= run.finished_at < self._complete_until
        )

    def _is_compared(self, one: Run | LifecycleRecord) -> bool:
        since = self._outcomes_from.since(one.namespace)
        return (
            since is not None
            and one.finished_at is not None
            and since <= one.finished_at < self._complete_until
        )

    def _read_outbox(self, ledger: LedgerReader, pacer: Pacer) -> None:
        after, topics = (0, 0, -1), [self._topics.lifecycle, self._topics.dead]
        while True:
            with pacer.step(), ledger.step():
                rows = ledger.unsent_events(topics, after, _ROWS)
            for *_, topic, value in rows:
                self._add(topic, value)
            if len(rows) < _ROWS:
                return
            after = rows[-1][:3]

    def _take(self, message: Any) -> None:
        topic, place = message.topic(), (message.topic(), message.partition())
        lifecycle = topic == self._topics.lifecycle
        key = (message.key() or b"").decode("utf-8", "replace") if lifecycle else _ALL
        coverage = self._outcomes_from if lifecycle else self._deaths_from
        coverage.note(place, message.offset(), message.timestamp()[1], key)
        self._add(topic, message.value())

    def _add(self, topic: str, value: bytes | None) -> None:
        self.counts.records += 1
        try:
            outcomes = _outcomes(value or b"") if topic == self._topics.lifecycle else []
            deaths = [read_death(value or b"")] if topic == self._topics.dead else []
        except ValueError:
            self.counts.unreadable += 1
            return
        outcomes = [one for one in outcomes if self._is_in_window(one)]
        self.counts.outcomes += len(outcomes)
        self._store.add(outcomes, [death for death in deaths if self._is_in_window(death)])

    def _is_in_window(self, one: LifecycleRecord | Death) -> bool:
        return one.scheduled_for is not None and self._since <= one.scheduled_for < self._until


def restricted(history: History, runs: Sequence[Run]) -> History:
    """Return the part of a history that is about some of its runs."""
    ids = {run.id for run in runs}
    return replace(
        history,
        runs=list(runs),
        attempts=[row for row in history.attempts if row.run in ids],
        dead_letters=[row for row in history.dead_letters if row.run in ids],
        lifecycle=[row for row in history.lifecycle if row.run in ids],
        deaths=[row for row in history.deaths or () if row.run in ids],
        sightings=[row for row in history.sightings or () if row.run in ids],
    )


def created_at(run: str) -> datetime | None:
    """Return when a run was created, by its id; None if the id does not say."""
    found = UUID(run)
    return datetime.fromtimestamp((found.int >> 80) / 1000, UTC) if found.version == 7 else None


def _outcomes(value: bytes) -> list[LifecycleRecord]:
    """Return the outcomes of an event, without what their digests say.

    Events of releases before 0.3.0 have no digests, so one without any does not say that there is no result.
    """
    outcomes = read_outcomes(value)
    if not any(one.result_digest or one.error_digest for one in outcomes):
        return [one._replace(result_digest=None, error_digest=None) for one in outcomes]
    return [one._replace(error=None) if one.error_digest else one for one in outcomes]
