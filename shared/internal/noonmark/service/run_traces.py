"""Decides which runs are traced, and sends the spans of their first hops, the same in every service."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

import psycopg

from noonmark.core.monitoring.trace_context import (
    Hop,
    SpanKind,
    SubmitTrace,
    TraceContext,
    is_chosen,
    parse_traceparent,
    root_span_id,
    span_id_of,
    trace_id_of,
)
from noonmark.schemas.events.submissions import CreateJob
from noonmark.store.jobs import traces
from noonmark.store.jobs.requests import Request, Status, Taken
from noonmark.telemetry.span_attributes import of_message
from noonmark.telemetry.tracing import Tracer


class Root(NamedTuple):
    """The trace of a run, and the parent of its first span; None if that is the root of the trace."""

    trace_id: str
    parent: str | None


class RunTraces:
    """Selects the runs that are traced: those whose client traces them, and a share of the others."""

    def __init__(self, tracer: Tracer, share: float) -> None:
        """Use this tracer; `share` is the share of traced runs among those without a trace of a client."""
        self.tracer = tracer
        self._share = share

    def roots(self, connection: psycopg.Connection, runs: Collection[tuple[UUID, UUID]]) -> dict[UUID, Root]:
        """Return the traces of the traced runs, by run; `runs` contains run and job ids."""
        return self.chosen(runs, traces.submitted(connection, (job_id for _, job_id in runs)))

    def chosen(self, runs: Iterable[tuple[UUID, UUID]], submitted: Mapping[UUID, str]) -> dict[UUID, Root]:
        """Return the same from the known traces of clients; `submitted` contains them by job."""
        found: dict[UUID, Root] = {}
        for run_id, job_id in runs:
            given = parse_traceparent(submitted[job_id]) if job_id in submitted else None
            if given is not None:
                found[run_id] = Root(given.trace_id, given.span_id)
            elif is_chosen(run_id, self._share):
                found[run_id] = Root(trace_id_of(run_id), None)
        return found

    def submitted(self, taken: Taken) -> None:
        """Send the spans of committed submissions, and of runs that were created with them."""
        now = time.time()
        for job_id, trace in taken.traced.items():
            self.tracer.record(
                Hop.SUBMIT,
                trace.context,
                kind=trace.kind,
                parent=trace.parent,
                began=trace.began,
                ended=now,
                attributes={**trace.attributes, "noonmark.job_id": str(job_id)},
            )
        jobs = {
            run_id: job_id
            for run_ids, job_ids in taken.begun
            for run_id, job_id in zip(run_ids, job_ids, strict=True)
        }
        given = {job_id: trace.context.traceparent for job_id, trace in taken.traced.items()}
        self.claimed(self.chosen(jobs.items(), given), jobs, began=now, ended=now)

    def claimed(
        self, roots: Mapping[UUID, Root], jobs: Mapping[UUID, UUID], *, began: float, ended: float
    ) -> None:
        """Send the first span of each run: it was written to the ledger.

        Args:
            roots: the traces of the traced runs.
            jobs: job by run.
            began: when writing began, in seconds since 1970.
            ended: when it was committed, in seconds since 1970.
        """
        for run_id, root in roots.items():
            self.tracer.record(
                Hop.CLAIM,
                TraceContext(root.trace_id, root_span_id(run_id)),
                kind=SpanKind.INTERNAL,
                parent=root.parent,
                began=began,
                ended=ended,
                attributes=about(run_id, jobs[run_id]),
            )

    def relayed(
        self, sent: Iterable[tuple[UUID, UUID, int, Root, str]], *, began: float, ended: float
    ) -> None:
        """Send the spans of relayed messages; each item has run, job, fence, the run's trace, and topic."""
        for run_id, job_id, fence, root, topic in sent:
            self.tracer.record(
                Hop.RELAY,
                relay_context(root, run_id, fence),
                kind=SpanKind.PRODUCER,
                parent=root_span_id(run_id),
                began=began,
                ended=ended,
                attributes={
                    **about(run_id, job_id),
                    "noonmark.fence": fence,
                    **of_message("send", topic),
                },
            )


def with_traces(connection: psycopg.Connection, requests: Sequence[Request], taken: Taken) -> Taken:
    """Store which jobs belong to traces of clients, in the transaction of their submissions.

    Returns `taken` with these traces.

    Recurring jobs are not stored: they run for years, and their runs have separate traces.
    """
    if all(request.trace is None for request in requests):
        return taken
    traced: dict[UUID, SubmitTrace] = {}
    once: dict[UUID, str] = {}
    for (submission, *_, trace), result in zip(requests, taken.results, strict=True):
        if trace is None or result.status is not Status.ACCEPTED or not isinstance(submission, CreateJob):
            continue
        assert result.job_id is not None
        traced[result.job_id] = trace
        if submission.spec.schedule is None:
            once[result.job_id] = trace.context.traceparent
    if once:
        traces.keep(connection, once)
    return taken._replace(traced=traced)


def about(run_id: UUID, job_id: UUID) -> dict[str, str]:
    """Return the attributes that every span of a run has."""
    return {"noonmark.run_id": str(run_id), "noonmark.job_id": str(job_id)}


def relay_context(root: Root, run_id: UUID, fence: int) -> TraceContext:
    """Return the span of the relay of one queueing of a run."""
    return TraceContext(root.trace_id, span_id_of(run_id, Hop.RELAY, fence))
