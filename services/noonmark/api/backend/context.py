"""The parts that routes share: built once per process, passed to every request."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from starlette.requests import Request

from noonmark.api.backend.database import Database
from noonmark.api.backend.group_commit import GroupCommit
from noonmark.api.backend.job_creation import CreateRequest
from noonmark.api.backend.lag import LaneLags
from noonmark.api.backend.live_events import LiveRuns
from noonmark.api.backend.log_followers import LogFollowers
from noonmark.api.backend.request_slots import RequestSlots
from noonmark.api.backend.submit import SubmissionAcceptor
from noonmark.api.http.cursors import Cursors
from noonmark.api.http.rate_limits import Rates
from noonmark.api.http.replies import StoredResponse
from noonmark.core.monitoring.trace_context import SpanKind, SubmitTrace
from noonmark.kafka.lag.backlog import LaneBacklogs
from noonmark.kafka.topics import Topics
from noonmark.service.run_traces import RunTraces
from noonmark.settings import Settings
from noonmark.telemetry.span_attributes import of_request


@dataclass(frozen=True, slots=True)
class ApiContext:
    """The shared parts of one API process.

    Attributes:
        settings: settings of the process.
        database: opens transactions that see only the namespaces of their caller.
        submitter: accepts submissions like those from events.
        cursors: creates and reads the cursors of listings.
        topics: names of the Kafka topics.
        backlogs: measures the backlogs of lanes on request.
        lags: measures the lag of all subscriptions on request.
        live: sends outcomes of runs to streams.
        log_followers: the open streams of logs.
        slots: how much of the threads and connections one credential uses.
        guesses: rate limits of unauthenticated completion reports.
        traces: None if traces are off.
        creations: creates jobs; concurrent requests share one transaction.
    """

    settings: Settings
    database: Database
    submitter: SubmissionAcceptor
    cursors: Cursors
    topics: Topics
    backlogs: LaneBacklogs
    creations: GroupCommit[CreateRequest, StoredResponse]
    live: LiveRuns
    lags: LaneLags
    log_followers: LogFollowers
    slots: RequestSlots
    guesses: Rates = field(default_factory=Rates)
    traces: RunTraces | None = None

    def begin_trace(self, request: Request) -> SubmitTrace | None:
        """Begin the span of a submission, from the client's trace context; None if traces are off."""
        if self.traces is None:
            return None
        route = request.scope["route"]
        return SubmitTrace.begin(
            request.headers.get("traceparent"),
            time.time(),
            SpanKind.SERVER,
            # The span is sent only for a job that was created, so the status is that of success.
            of_request(
                method=request.method,
                route=route.path_format,
                path=request.url.path,
                scheme=request.url.scheme,
                status=route.status_code,
            ),
        )

    def end_streams(self) -> None:
        """End all open streams: they would otherwise last for hours."""
        self.log_followers.close()
        self.live.close()

    def close(self) -> None:
        """Stop streams and threads, and close connections."""
        self.end_streams()
        self.lags.close()
        self.submitter.close()
        self.database.close()
