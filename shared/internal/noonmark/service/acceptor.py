"""Accepts submissions in a service, under the lock that protects the facts they are checked with."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import psycopg

from noonmark.core.schedules.time_facts import TimeFacts
from noonmark.kafka.topics import Topics
from noonmark.service.run_traces import RunTraces, with_traces
from noonmark.store.database.hints import HintSender
from noonmark.store.jobs.submit import FactCache, Request, Taken, accept
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.schedules.time_facts import DatabaseClock, Moment, share_time_facts
from noonmark.telemetry.verdicts import UNKNOWN_KIND, count_ends

Read = Callable[[Moment], Sequence[Request]]
"""Checks documents with the facts of a moment; raises `Refused`. Called again if a fact has changed."""


class Acceptor:
    """Accepts submissions in its callers' transactions. Thread-safe.

    Attributes:
        events: where verdicts are published.
        shards: number of shards of the installation.
    """

    def __init__(
        self, topics: Topics, hints: HintSender, *, shards: int, traces: RunTraces | None = None
    ) -> None:
        """Create the acceptor; it reads nothing from the database before the first submission."""
        self.events = EventTopics(lifecycle=topics.lifecycle, dead=topics.dead)
        self.shards = shards
        self._traces = traces
        self._hints = hints
        self._clock = DatabaseClock()
        self._local = _PerThread()

    @property
    def known(self) -> FactCache:
        """What the calling thread has cached."""
        return self._local.known

    def cached_moment(self) -> Moment | None:
        """Return the facts as they were read last, with the time of now; None before the first submission."""
        return self._clock.moment()

    def moment(self, connection: psycopg.Connection) -> Moment:
        """Read the facts that documents are checked with."""
        self._clock.refresh(connection)
        moment = self._clock.moment()
        assert moment is not None
        return moment

    def accept_read(self, connection: psycopg.Connection, read: Read) -> Taken:
        """Check and accept submissions in the caller's open transaction.

        After the commit, call `record_accepted` to send the hints.

        Raises:
            Refused: a document is not valid.
        """
        share_time_facts(connection, wait=True)
        # Under the lock, the facts that documents are checked with cannot change before the transaction ends.
        moment = self.moment(connection)
        requests = read(moment)
        if not requests:
            return Taken([], moment.now, queued=False, due_soon=False)
        return self.accept(connection, requests, moment.facts)

    def accept(self, connection: psycopg.Connection, requests: Sequence[Request], facts: TimeFacts) -> Taken:
        """Accept checked submissions; `facts` must not change before the caller's transaction ends."""
        taken = accept(
            connection, requests, shards=self.shards, topics=self.events, known=self.known, facts=facts
        )
        return taken if self._traces is None else with_traces(connection, requests, taken)

    def record_accepted(self, taken: Taken) -> None:
        """Send hints to the services, after the commit."""
        if self._traces is not None:
            self._traces.submitted(taken)
        self.hint(queued=taken.queued, due_soon=taken.due_soon, freed=taken.freed)
        if taken.settled:
            self._hints.ended()
            count_ends({(state, lane, UNKNOWN_KIND): count for (state, lane), count in taken.settled.items()})

    def hint(
        self, *, queued: bool = False, due_soon: bool = False, freed: bool = False, ended: bool = False
    ) -> None:
        """Send hints after a commit: new messages, timers due soon, freed capacity, workflows that go on."""
        if queued:
            self._hints.outbox()
        if due_soon:
            self._hints.due()
        if freed:
            self._hints.freed()
        # What frees capacity has ended runs, perhaps those of tasks.
        if freed or ended:
            self._hints.ended()

    def close(self) -> None:
        """Close the sender of hints."""
        self._hints.close()


class _PerThread(threading.local):
    """Each thread's cache for pools, days and catalogues, created with its first use there."""

    def __init__(self) -> None:
        self.known = FactCache()
