"""Submissions by the API: checked and taken in by the same code as events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psycopg

from noonmark.api.problem import ProblemError
from noonmark.core.words import Lane
from noonmark.kafka.topics import Topics
from noonmark.schemas.envelope import Event
from noonmark.schemas.refusal import FieldError, Refused
from noonmark.schemas.submissions import Submission, parse_submission
from noonmark.service.database_clock import DatabaseClock, Moment
from noonmark.store.events import EventTopics
from noonmark.store.hints import HintSender
from noonmark.store.jobs import KnownFacts, Request, Result, Status, Taken, accept
from noonmark.store.time_facts import share_time_facts
from noonmark.telemetry.metrics import RUNS_SETTLED

Read = Callable[[Moment], Sequence[Request]]
"""Checks documents with what holds at a moment; raises `Refused`. Called again if a fact changed."""


class Submitter:
    """Takes in submissions inside transactions of requests. Safe to use from many threads."""

    def __init__(self, topics: Topics, hints: HintSender, *, shards: int) -> None:
        """Make it; nothing is asked of the database before the first submission."""
        self.events = EventTopics(lifecycle=topics.lifecycle, dead=topics.dead)
        self._hints = hints
        self.shards = shards
        self._clock = DatabaseClock()
        self._local = threading.local()

    def moment(self, connection: psycopg.Connection) -> Moment:
        """Read what documents are checked with."""
        self._clock.look(connection)
        moment = self._clock.moment()
        assert moment is not None
        return moment

    def take_in(self, connection: psycopg.Connection, read: Read) -> Taken:
        """Check and take in submissions in the caller's open transaction.

        After its commit, `told` sends the hints.

        Raises:
            Refused: a document is not valid.
        """
        share_time_facts(connection, wait=True)
        # Under the lock nothing that documents are checked with changes before the transaction ends.
        moment = self.moment(connection)
        return accept(
            connection,
            read(moment),
            shards=self.shards,
            topics=self.events,
            known=self._known,
            facts=moment.facts,
        )

    def take_in_one(self, connection: psycopg.Connection, event_type: str, data: Mapping[str, Any]) -> Taken:
        """Take in one submission, given as an event's type and data.

        Raises:
            ProblemError: it is rejected; nothing is changed once the caller's transaction rolls back.
            Refused: a document is not valid; pointers are relative to `data`.
        """

        def read(moment: Moment) -> Sequence[Request]:
            return [Request(parse(event_type, data, moment), None)]

        taken = self.take_in(connection, read)
        raise_rejected(taken.results[0])
        return taken

    def told(self, taken: Taken) -> None:
        """Hint the services, after the commit."""
        if taken.queued:
            self._hints.outbox()
        if taken.due_soon:
            self._hints.due()
        if taken.freed:
            self._hints.freed()
        for (state, lane), count in taken.settled.items():
            RUNS_SETTLED.labels(state, Lane(lane).label).inc(count)

    def close(self) -> None:
        """End the sender of hints."""
        self._hints.close()

    @property
    def _known(self) -> KnownFacts:
        """What this thread has seen of pools and days."""
        known = getattr(self._local, "known", None)
        if known is None:
            known = self._local.known = KnownFacts()
        return known


def parse(event_type: str, data: Mapping[str, Any], moment: Moment) -> Submission:
    """Check a submission; pointers of problems are relative to `data`.

    Raises:
        Refused: it is not valid.
    """
    event = Event("", "api", event_type, None, None, None, dict(data), screened=True)
    try:
        return parse_submission(event, now=moment.now, ledger_floor=moment.ledger_floor, facts=moment.facts)
    except Refused as refused:
        # Events carry the document in `data`; here it is the body itself.
        raise Refused(
            FieldError(item.pointer.removeprefix("/data"), item.message, item.expected)
            for item in refused.errors
        ) from None


def raise_rejected(result: Result) -> None:
    """End the request if the store rejected it.

    Raises:
        ProblemError: it did.
    """
    if result.status is Status.REJECTED:
        raise ProblemError.of_result(result)
