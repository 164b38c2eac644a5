"""Publishing submissions to Kafka: signed, acknowledged, and safe to repeat."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self
from uuid import UUID

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from noonmark.client.errors import ClientError
from noonmark.core.access.submission_signature import (
    MOST_AHEAD_SECONDS,
    USUAL_SECONDS,
    PublisherKey,
    SignedEvent,
    signature_header,
)
from noonmark.core.causes import cause_of
from noonmark.core.ids import uuid7
from noonmark.schemas.events.envelope import STRUCTURED_HEADERS, render_structured
from noonmark.schemas.events.submissions import CANCEL, CANCEL_RUNS, CREATE, PAUSE, RESUME, TRIGGER, UPDATE

_DEFAULTS: Final = {"client.id": "noonmark-client", "message.timeout.ms": 120_000, "linger.ms": 5}
_POLL_SECONDS: Final = 0.1
_FULL_SECONDS: Final = 0.01
_MOST_SHOWN: Final = 3
_ENDED: Final = frozenset({KafkaError._FATAL, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})  # noqa: SLF001
# A principal that may write to no topic at all is refused the id of a producer: a right of the cluster.
_REFUSALS: Final = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})


class Published(NamedTuple):
    """Where the broker stored an event: from then on it is not lost.

    Attributes:
        event_id: its id; together with `source` it identifies the event in rejections.
        topic: its topic.
        partition: its partition.
        offset: its offset.
    """

    event_id: str
    topic: str
    partition: int
    offset: int


class PublishError(ClientError):
    """Events were not acknowledged. Whether the broker has them is not known.

    Publish them again with the same event ids: those that were already ingested are recognised.

    Attributes:
        failed: the event id and the reason of each.
    """

    def __init__(self, failed: Sequence[tuple[str, str]]) -> None:
        self.failed = tuple(failed)
        shown = "; ".join(f"{event_id}: {reason}" for event_id, reason in failed[:_MOST_SHOWN])
        more = f" and {len(failed) - _MOST_SHOWN} more" if len(failed) > _MOST_SHOWN else ""
        super().__init__(f"{len(failed)} events were not acknowledged ({shown}{more})")


class Publisher:
    """Publishes submissions for one namespace. Threads may share it; `close` it, or use it in a `with`.

    Every method returns a future at once; its result says where the broker stored the event. Lifecycle events
        and rejections report how intake handled it.

    Args:
        kafka: `host:port` list of the brokers, or properties of `confluent_kafka.Producer`.
        key: the publisher's key, `nmp_…`; None: unsigned, for topics that are bound to a namespace.
        namespace: the namespace of documents that name none.
        topic: the topic that events are published to.
        source: `source` of the events; together with its id it identifies an event.
        valid_seconds: how long a signature is valid; at most a day.

    Raises:
        SubmissionSignatureError: the key is not a publisher key.
        ValueError: `valid_seconds` is too long.
    """

    def __init__(
        self,
        kafka: str | Mapping[str, Any],
        key: str | None = None,
        *,
        namespace: str = "default",
        topic: str = "noonmark.submissions",
        source: str = "noonmark-client",
        valid_seconds: float = USUAL_SECONDS,
    ) -> None:
        if not 0 < valid_seconds <= MOST_AHEAD_SECONDS:
            raise ValueError(f"valid_seconds is {valid_seconds:g}: use up to {MOST_AHEAD_SECONDS}")
        given = {"bootstrap.servers": kafka} if isinstance(kafka, str) else dict(kafka)
        self._key = PublisherKey.parse(key) if key is not None else None
        self._namespace = namespace
        self._topic = topic
        self._source = source
        self._valid_seconds = valid_seconds
        self._lock = threading.Lock()
        self._failed: list[tuple[str, str]] = []
        self._waiting: dict[Future[Published], str] = {}
        self._reports: dict[Future[Published], tuple[KafkaError | None, Message]] = {}
        self._fatal: KafkaError | None = None
        # With it, the Kafka client's own retries are neither duplicated nor out of order.
        self._producer = Producer({**_DEFAULTS, **given, "enable.idempotence": True})
        self._closed = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="noonmark publisher", daemon=True)
        self._poller.start()

    # -- jobs ------------------------------------------------------------------------------------------

    def publish(
        self,
        job: Mapping[str, Any],
        *,
        event_id: str | None = None,
        key: str | None = None,
        sequence: int | None = None,
    ) -> Future[Published]:
        """Create a job.

        Args:
            job: its document.
            event_id: use the same id each time you publish the same request; by default a new one.
            key: of the Kafka record; events with the same stay in order. By default the job's name.
            sequence: position among the events of the job.

        Raises:
            PublishError: the event can never be sent, for example because it is too large.
            SubmissionSignatureError: its namespace is not valid.
        """
        return self._send(CREATE, self._placed(job), event_id, key, sequence)

    def publish_many(self, jobs: Iterable[Mapping[str, Any]]) -> list[Future[Published]]:
        """Create jobs; `flush` waits for all of them."""
        return [self.publish(job) for job in jobs]

    def update(
        self,
        job: Mapping[str, Any],
        *,
        job_id: UUID | str | None = None,
        event_id: str | None = None,
        sequence: int | None = None,
    ) -> Future[Published]:
        """Replace the whole document of the job with this id, else of the job that the document names."""
        named = {} if job_id is None else {"job_id": str(job_id)}
        return self._send(UPDATE, self._placed({**job, **named}), event_id, None, sequence)

    # -- orders ----------------------------------------------------------------------------------------

    def pause(self, job: UUID | str, *, reason: str | None = None, **more: Any) -> Future[Published]:
        """Pause a job until it is resumed.

        Args:
            job: its id as a UUID, or the name of a recurring job of the namespace.
            reason: why, for people.
            more: `event_id` and `sequence`, as in `publish`.
        """
        return self._order(PAUSE, job, {"reason": reason}, **more)

    def resume(self, job: UUID | str, *, missed: str = "skip", **more: Any) -> Future[Published]:
        """Resume a paused job; `missed` is `skip`, `latest` or `all`."""
        return self._order(RESUME, job, {"missed": missed}, **more)

    def trigger(self, job: UUID | str, **more: Any) -> Future[Published]:
        """Run a job once now, in addition to its schedule."""
        return self._order(TRIGGER, job, {}, **more)

    def cancel(self, job: UUID | str, *, reason: str | None = None, **more: Any) -> Future[Published]:
        """Cancel a job permanently, and its unfinished runs."""
        return self._order(CANCEL, job, {"reason": reason}, **more)

    def cancel_runs(self, run_ids: Iterable[UUID | str], *, event_id: str | None = None) -> Future[Published]:
        """Cancel up to 100 runs of the namespace, all of them or none."""
        return self._send(CANCEL_RUNS, {"run_ids": [str(one) for one in run_ids]}, event_id, None, None)

    # -- life ------------------------------------------------------------------------------------------

    def flush(self, timeout_seconds: float = 60.0) -> None:
        """Wait until the broker has everything that was published; not for use in a callback of a future.

        Raises:
            PublishError: some events since the last flush were not acknowledged, or not in time.
        """
        waiting = dict(self._waiting)
        late = wait(waiting, timeout_seconds).not_done
        with self._lock:
            failed, self._failed = self._failed, []
        failed += [(event_id, "no answer in time") for event_id in sorted(waiting[one] for one in late)]
        if failed:
            raise PublishError(failed)

    def close(self, timeout_seconds: float = 60.0) -> None:
        """Flush, and close the connection.

        Raises:
            PublishError: as `flush` does.
        """
        try:
            self.flush(timeout_seconds)
        finally:
            self._closed.set()
            self._poller.join(timeout_seconds)
            # Nothing may hold it up: what is not acknowledged by now is failed.
            self._producer.purge()
            with suppress(KafkaException, SystemError):
                # Its fatal error, if it was not raised before.
                self._producer.close()
            self._settle()
            self._abandon(KafkaError(KafkaError._DESTROY, "the publisher was closed"))  # noqa: SLF001

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        try:
            self.close()
        except PublishError:
            # An error in the block takes precedence.
            if kind is None:
                raise

    # -- helpers ---------------------------------------------------------------------------------------

    def _placed(self, data: Mapping[str, Any]) -> dict[str, Any]:
        return {"namespace": self._namespace, **data}

    def _order(
        self,
        kind: str,
        job: UUID | str,
        data: Mapping[str, Any],
        *,
        event_id: str | None = None,
        sequence: int | None = None,
    ) -> Future[Published]:
        named = {"job_id": str(job)} if isinstance(job, UUID) else {"name": job}
        said = {name: value for name, value in data.items() if value is not None}
        return self._send(kind, self._placed({**named, **said}), event_id, None, sequence)

    def _send(
        self, kind: str, data: Mapping[str, Any], event_id: str | None, key: str | None, sequence: int | None
    ) -> Future[Published]:
        event_id = event_id if event_id is not None else str(uuid7())
        value = render_structured(id=event_id, source=self._source, type=kind, data=data, sequence=sequence)
        headers: list[tuple[str, str | bytes | None]] = [*STRUCTURED_HEADERS]
        place = str(data.get("namespace", self._namespace))
        if self._key is not None:
            event = SignedEvent(self._source, event_id, kind, sequence, value)
            headers.append(
                signature_header(
                    self._key, event, namespace=place, now=time.time(), valid_seconds=self._valid_seconds
                )
            )
        future: Future[Published] = Future()
        future.set_running_or_notify_cancel()

        self._waiting[future] = event_id
        name = data.get("name")
        own = f"{place}/{name}" if name else str(data.get("job_id") or event_id)
        reports = self._reports

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            # A single step: any call would fail if what ended the producer is being raised (see `_poll`).
            reports[future] = error, message

        while True:
            try:
                self._producer.produce(
                    self._topic, value, (key or own).encode(), headers=headers, on_delivery=on_delivery
                )
            except BufferError:
                # The queue is full: it empties when the broker answers or messages time out.
                time.sleep(_FULL_SECONDS)
            except KafkaException as error:
                self._waiting.pop(future, None)
                raise PublishError([(event_id, self._reason(error.args[0]))]) from error
            else:
                return future

    def _poll(self) -> None:
        """Serve the client until `close`: only this thread learns what ended it, before what that failed."""
        while not self._closed.is_set():
            try:
                self._producer.poll(_POLL_SECONDS)
            except (KafkaException, SystemError) as error:
                # It is the cause of a SystemError if reports of deliveries were served in the same call.
                found = cause_of(error, KafkaException)
                if found is None:
                    raise
                self._fatal = found.args[0]
            self._settle()
            if self._fatal is not None and not len(self._producer):
                # A report may have been lost.
                self._abandon(self._fatal)

    def _settle(self) -> None:
        """Give every reported delivery to its future."""
        for future in list(self._reports):
            error, message = self._reports.pop(future)
            if error is not None:
                self._fail(future, error)
            elif (event_id := self._waiting.pop(future, None)) is not None:
                topic, partition, offset = message.topic(), message.partition(), message.offset()
                assert topic is not None
                assert partition is not None
                assert offset is not None
                future.set_result(Published(event_id, topic, partition, offset))

    def _fail(self, future: Future[Published], error: KafkaError) -> None:
        if (event_id := self._waiting.pop(future, None)) is not None:
            failure = event_id, self._reason(error)
            with self._lock:
                self._failed.append(failure)
            future.set_exception(PublishError([failure]))

    def _abandon(self, error: KafkaError) -> None:
        """Fail all that waits."""
        for future in list(self._waiting):
            self._fail(future, error)

    def _reason(self, error: KafkaError) -> str:
        if self._fatal is not None and error.code() in _ENDED:
            error = self._fatal
        if error.code() not in _REFUSALS:
            ended = ": this publisher can send nothing more, create a new one" if error.fatal() else ""
            return error.str() + ended
        return (
            f"this client may not WRITE topic {self._topic}: grant its principal that right, "
            "`noonmark rights kafka` prints the commands that grant it"
        )
