"""What the routes work with: made once per process, handed to every request."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from starlette.requests import Request

from noonmark.api.backend.database import Database
from noonmark.api.backend.group_commit import GroupCommit
from noonmark.api.backend.job_creation import CreateRequest
from noonmark.api.backend.lag import LaneLags
from noonmark.api.backend.live_events import LiveRuns
from noonmark.api.backend.submit import SubmissionAcceptor
from noonmark.api.http.cursors import Cursors
from noonmark.api.http.rate_limits import Rates
from noonmark.api.http.replies import StoredResponse
from noonmark.core.monitoring.trace_context import SubmitTrace
from noonmark.kafka.lag.backlog import LaneBacklogs
from noonmark.kafka.topics import Topics
from noonmark.service.run_traces import RunTraces
from noonmark.settings import Settings


@dataclass(frozen=True, slots=True)
class ApiContext:
    """The parts of one API process.

    Attributes:
        settings: as read at the start.
        database: transactions that see what their caller may see.
        submitter: takes in submissions as events are taken in.
        cursors: of listings.
        topics: names of topics.
        backlogs: what stands in lanes, measured when somebody asks.
        lags: of all subscriptions, likewise.
        live: tells streams of what becomes of runs.
        guesses: of reports on runs, which nobody is authenticated for.
        traces: None where traces are off.
        creations: makes jobs: those that come at the same time in one transaction.
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
    guesses: Rates = field(default_factory=Rates)
    traces: RunTraces | None = None

    def begin_trace(self, request: Request) -> SubmitTrace | None:
        """Begin the span of a submission whose client sent a trace along; None where traces are off."""
        if self.traces is None:
            return None
        return SubmitTrace.begin(request.headers.get("traceparent"), time.time())

    def close(self) -> None:
        """End streams, threads and connections."""
        self.live.close()
        self.lags.close()
        self.submitter.close()
        self.database.close()
