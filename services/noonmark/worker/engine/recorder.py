"""The recorder: writes finished outcomes in batches, one transaction each; only then can offsets move."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence

import psycopg

from noonmark.attempts.running_attempt import RunningAttempt
from noonmark.attempts.traces import record_spans
from noonmark.core.faults import hit
from noonmark.core.states import AttemptOutcome, Origin, RunState
from noonmark.kafka.topics import Topics
from noonmark.service.backoff import Backoff
from noonmark.service.database_errors import DbFault, classify, must_reconnect
from noonmark.service.database_loop import Pace
from noonmark.service.gathering import Gathering
from noonmark.service.runner import Service
from noonmark.store.database.connect import connect
from noonmark.store.database.hints import HintSender
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.runs import finish
from noonmark.store.runs.finish import Outcome, Recorded, keys_of
from noonmark.store.runs.locked_runs import LOCK_WAIT_SECONDS, is_lock_timeout
from noonmark.store.runs.worker_lease import Identity
from noonmark.telemetry.metrics import ATTEMPT_DURATION, FENCED_WRITES
from noonmark.telemetry.verdicts import UNKNOWN_KIND, count_ends
from noonmark.worker.engine.locked_outcomes import LockedOutcomes
from noonmark.worker.in_flight import RunsInFlight, StartBatches
from noonmark.worker.lanes.reader import LaneReader, settle_records

_MOST = 1000
_RETRY_HINT_SECONDS = 1.5
_POLL_SECONDS = 0.5
_PAUSE_SECONDS = 0.01
"""Handlers of a start batch end one after another: after this pause their outcomes are written at once."""

_TASK = Origin.TASK.value
_ENOUGH = 800
"""While many runs end, their outcomes wait for so many."""

_OF_SLOTS = 5
"""Outcomes of so many runs per slot are enough, too: a quarter of what a worker has in flight at most."""

_DROPPED = "details could not be stored"

_Ending = tuple[str | None, str]
"""The kind of a job and how an attempt ended."""


class RecorderLoop:
    """Writes outcomes in the name of the lease they belong to, and keeps trying while Postgres is down."""

    name = "recorder"

    def __init__(
        self,
        service: Service,
        topics: EventTopics,
        hints: HintSender,
        batches: StartBatches,
        *,
        shards: int,
        identity: Callable[[], Identity],
        settled: Callable[[Sequence[Outcome]], None],
    ) -> None:
        """Create the recorder.

        Args:
            service: the process.
            topics: where verdicts are published.
            hints: wakes dispatcher and trigger.
            batches: counts the runs in flight of each start batch.
            shards: number of shards of the installation.
            identity: returns the current lease of the worker.
            settled: receives outcomes that are in Postgres.
        """
        self._service = service
        self._log = service.log.bind(loop=self.name)
        self._topics = topics
        self._hints = hints
        self._batches = batches
        self._shards = shards
        self._identity = identity
        self._settled = settled
        self._inbox: deque[Outcome] = deque()
        self._locked = LockedOutcomes()
        self._wake = threading.Event()
        self._pace = Pace(_PAUSE_SECONDS)
        self._gathering = Gathering(min(_ENOUGH, _OF_SLOTS * service.settings.worker_slots))
        self._progress = service.health.progress(self.name, 30.0)
        self.closed = threading.Event()

    def put(self, outcomes: Sequence[Outcome]) -> None:
        """Queue finished outcomes; callable from any thread."""
        self._inbox.extend(outcomes)
        self._wake.set()

    def close(self) -> None:
        """Stop the recorder; called when no run is in flight any more."""
        self.closed.set()
        self._wake.set()

    def forget(self) -> None:
        """Drop the outcomes of a lost lease: their runs belong to other workers now."""
        self._inbox.clear()
        self._locked.clear()

    @property
    def waiting(self) -> int:
        """The number of outcomes not yet recorded."""
        return len(self._inbox) + len(self._locked)

    def run(self, stop: threading.Event) -> None:
        """Record until the engine closes the recorder, after the last outcome of a drain."""
        del stop
        connection: psycopg.Connection | None = None
        backoff = Backoff(first_seconds=0.1, cap_seconds=1.0)
        try:
            while not self.closed.is_set():
                self._progress.beat()
                if not self._inbox:
                    self._wake.wait(_POLL_SECONDS)
                self._pace.hold(self.closed)
                self._gathering.hold(self.closed, lambda: len(self._inbox))
                self._wake.clear()
                outcomes = self._take()
                if outcomes:
                    self._gathering.took(len(outcomes))
                    connection = self._record(connection, outcomes, backoff)
                    if backoff.failures:
                        backoff.reset()
                if self._locked.is_due():
                    connection = self._record_unlocked(connection, backoff)
        finally:
            if connection is not None:
                connection.close()

    def _take(self) -> list[Outcome]:
        taken: list[Outcome] = []
        while self._inbox and len(taken) < _MOST:
            try:
                taken.append(self._inbox.popleft())
            except IndexError:
                break
        return taken

    def _record(
        self,
        connection: psycopg.Connection | None,
        outcomes: list[Outcome],
        backoff: Backoff,
        *,
        unsure: bool = False,
    ) -> psycopg.Connection | None:
        """Record one batch, however long the database is down; a lost lease ends the wait."""
        identity = self._identity()
        while True:
            try:
                connection = connection or self._connect()
                if self._locked:
                    # While a run is locked, each batch is checked first: to wait every time would be slow.
                    outcomes = self._locked.divide(connection, outcomes)
                recorded = self._write(connection, identity, outcomes, unsure=unsure)
            except (psycopg.Error, OSError) as error:
                if classify(error) is DbFault.PERMANENT:
                    if not isinstance(error, psycopg.Error):
                        raise  # not about these outcomes
                    if len(outcomes) > 1:
                        return self._record_halves(connection, outcomes, backoff, unsure=unsure)
                    outcomes = self._without_details(outcomes, error)
                    continue
                if len(others := self._without_locked(connection, outcomes, error)) < len(outcomes):
                    outcomes = others
                    continue
                unsure = True
                self._log.warning("outcomes_not_recorded_yet", count=len(outcomes), error=str(error).strip())
                connection = _still_usable(connection, error)
                if self._identity() != identity or self.closed.is_set():
                    return connection
                time.sleep(backoff.next_seconds())
                self._progress.beat()
            else:
                self.committed(outcomes, recorded)
                return connection

    def _write(
        self, connection: psycopg.Connection, identity: Identity, outcomes: list[Outcome], *, unsure: bool
    ) -> Recorded:
        if not outcomes:
            return Recorded()
        with connection.transaction():
            recorded = self.record_in(connection, identity, outcomes, unsure=unsure)
            hit("worker.before_outcome")
        hit("worker.after_outcome")
        return recorded

    def _record_halves(
        self,
        connection: psycopg.Connection | None,
        outcomes: list[Outcome],
        backoff: Backoff,
        *,
        unsure: bool,
    ) -> psycopg.Connection | None:
        """Record the halves of a batch one by one: one outcome is at fault, the others keep theirs."""
        middle = len(outcomes) // 2
        for some in (outcomes[:middle], outcomes[middle:]):
            connection = self._record(connection, some, backoff, unsure=unsure)
        return connection

    def _without_locked(
        self,
        connection: psycopg.Connection | None,
        outcomes: list[Outcome],
        error: psycopg.Error | OSError,
    ) -> list[Outcome]:
        """Set aside outcomes whose runs another session has locked, if that is the error; return the rest.

        All are returned if the lock is that of another row, or of a whole table.
        """
        if connection is None or not is_lock_timeout(error):
            return outcomes
        try:
            others = self._locked.divide(connection, outcomes)
        except psycopg.Error:
            return outcomes
        if locked := {o.run.id for o in outcomes} - {o.run.id for o in others}:
            self._log.warning("outcomes_locked", count=len(locked), run_id=str(min(locked)))
        return others

    def _connect(self) -> psycopg.Connection:
        return connect(
            self._service.settings.dsn,
            application="recorder",
            autocommit=True,
            lock_timeout_seconds=LOCK_WAIT_SECONDS,
        )

    def _record_unlocked(
        self, connection: psycopg.Connection | None, backoff: Backoff
    ) -> psycopg.Connection | None:
        """Record outcomes that were set aside and whose runs are not locked any more."""
        try:
            connection = connection or self._connect()
            outcomes = self._locked.take_unlocked(connection)
        except (psycopg.Error, OSError) as error:
            if classify(error) is DbFault.PERMANENT:
                raise
            return _still_usable(connection, error)
        # Whether an earlier try of them was sure was not kept.
        return self._record(connection, outcomes, backoff, unsure=True) if outcomes else connection

    def record_in(
        self, connection: psycopg.Connection, identity: Identity, outcomes: list[Outcome], *, unsure: bool
    ) -> Recorded:
        """Record outcomes in the caller's transaction; the caller must call `committed` after the commit.

        Args:
            connection: in a transaction.
            identity: the lease that the outcomes belong to.
            outcomes: of runs whose end the caller has claimed.
            unsure: an earlier try may have committed them.
        """
        ended = self._batches.would_end(outcomes)
        fresh = outcomes
        if unsure:
            done = finish.already_recorded(connection, identity, outcomes)
            fresh = [o for o in outcomes if o.run.id not in done]
        return finish.record(connection, identity, self._topics, fresh, ended, shards=self._shards)

    def committed(self, outcomes: list[Outcome], recorded: Recorded) -> None:
        """Do what follows the commit of outcomes: settle runs, count, send hints; callable from any thread.

        Args:
            outcomes: each exactly once.
            recorded: what was written; it does not contain outcomes that an earlier try recorded.
        """
        self._batches.ended(outcomes)
        self._settled(outcomes)
        if recorded.fenced:
            FENCED_WRITES.labels("worker", "finish").inc(len(recorded.fenced))
            self._log.warning(
                "outcomes_fenced", count=len(recorded.fenced), run_id=str(recorded.fenced[0].run.id)
            )
        count_ends(_ends(outcomes, recorded))
        if recorded.tasks_ended:
            self._hints.ended()
            if not recorded.plain:
                count_ends(_ends(outcomes, recorded, of_tasks=True), of_tasks=True)
        if not recorded.plain and any(
            o.retry_seconds < _RETRY_HINT_SECONDS for o in outcomes if o.state == RunState.RETRYING
        ):
            self._hints.due()
        if recorded.freed:
            self._hints.freed()

    def _without_details(self, outcomes: list[Outcome], error: psycopg.Error) -> list[Outcome]:
        """Drop details that Postgres cannot store, such as results and error texts, and keep the verdicts."""
        self._log.error("outcome_details_dropped", count=len(outcomes), error=str(error).strip())
        extras = [o.extras for o in outcomes if o.extras is not None]
        if all(o.result is None and o.error in {None, _DROPPED} for o in outcomes) and all(
            extra.log is None and extra.note is None for extra in extras
        ):
            raise error
        for extra in extras:
            extra.log = extra.note = None
        for outcome in outcomes:
            outcome.result = None
            if outcome.error is not None:
                outcome.error = _DROPPED
        return outcomes


def _ends(
    outcomes: Sequence[Outcome], recorded: Recorded, *, of_tasks: bool = False
) -> Counter[tuple[str, int, str]]:
    """Count what was written, of tasks or else, by state, lane and kind; no kind of what has succeeded."""
    if recorded.plain:
        lanes = Counter([o.run.lane for o in recorded.plain])
        return Counter({(RunState.SUCCEEDED.value, lane, UNKNOWN_KIND): n for lane, n in lanes.items()})
    states = recorded.states
    return Counter(
        (states[o.run.id], o.run.lane, o.run.kind or UNKNOWN_KIND)
        for o in outcomes
        if o.run.id in states and (o.run.origin == _TASK) is of_tasks
    )


class SettledRuns:
    """Receives outcomes that are in Postgres: their runs leave the registry, and their offsets can move."""

    def __init__(
        self,
        service: Service,
        readers: Sequence[LaneReader],
        in_flight: RunsInFlight,
        wake: Callable[[], None],
    ) -> None:
        """Create it.

        Args:
            service: the process.
            readers: one per lane, in the order of the lanes.
            in_flight: the runs in flight.
            wake: wakes the engine, because slots are free.
        """
        self._service = service
        self._readers = readers
        self._in_flight = in_flight
        self._wake = wake
        self._topics = Topics(service.settings.topic_prefix)

    def __call__(self, outcomes: Sequence[Outcome]) -> None:
        """Settle outcomes that are in Postgres; called by the recorder, from any thread."""
        now = time.monotonic()
        ended: list[RunningAttempt] = []
        durations: defaultdict[_Ending, list[float]] = defaultdict(list)
        traced: defaultdict[_Ending, list[tuple[float, str]]] = defaultdict(list)
        removed = self._in_flight.remove(keys_of(outcomes))
        kind: str | None = ""
        how: AttemptOutcome | None = None
        seconds: list[float] = []
        for attempt, outcome in zip(removed, outcomes, strict=True):
            if attempt is None:
                continue
            ended.append(attempt)
            if attempt.began_at:
                if attempt.run.kind != kind or outcome.attempt_outcome is not how:
                    # Nearly all end alike. `value` would be a property, written in Python.
                    kind, how = attempt.run.kind, outcome.attempt_outcome
                    seconds = durations[kind, how._value_]
                seconds.append(now - attempt.began_at)
            if attempt.trace is not None:
                if attempt.began_at:
                    ending = (attempt.run.kind, outcome.attempt_outcome._value_)
                    traced[ending].append((now - attempt.began_at, attempt.trace.context.trace_id))
                if self._service.traces is not None:
                    group = self._topics.group_worker(attempt.pool, attempt.lane)
                    record_spans(self._service.traces.tracer, attempt, outcome, group=group)
        settle_records(self._readers, ended)
        for (kind, ending_value), seconds in durations.items():
            labelled = ATTEMPT_DURATION.labels(kind or UNKNOWN_KIND, ending_value)
            labelled.observe_many(seconds, traced[kind, ending_value])
        self._wake()


def _still_usable(
    connection: psycopg.Connection | None, error: psycopg.Error | OSError
) -> psycopg.Connection | None:
    """Return a connection after a fault; None, and close it, if it is unusable."""
    if connection is not None and (must_reconnect(error) or connection.broken):
        connection.close()
        return None
    return connection
