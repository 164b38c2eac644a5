"""Jobs: create, read, change and explain them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID, uuid4

from noonmark.client.answers import IDEMPOTENCY_KEY, Call, Page
from noonmark.client.binding import D, Group, listing, operation
from noonmark.client.parsing import document, items, page, path
from noonmark.client.types.backfills import Backfill, BackfillPlan
from noonmark.client.types.job_stats import JobStats
from noonmark.client.types.jobs import (
    ChangedJob,
    Job,
    JobDiff,
    JobMade,
    JobsMade,
    JobTriggered,
    JobVersion,
    PreviewAnswer,
)
from noonmark.client.types.runs import RunSummary
from noonmark.client.types.why import Why

Document = Mapping[str, Any]
"""A job document; docs/job-document.md lists its fields."""

Id = UUID | str


class Jobs(Group[D]):
    """`client.jobs`."""

    @operation
    def create(self, job: Document, *, idempotency_key: str | None = None) -> Call[JobMade]:
        """Create a job; it is stored when this returns.

        Args:
            job: the job document; if it names no namespace, the client's is used.
            idempotency_key: a second call with the same key and document creates nothing new and returns the
                        first result. By default a new key, so that the client can retry the call safely.

        Raises:
            ApiError: it was refused; `errors` names each wrong field.
        """
        headers = {IDEMPOTENCY_KEY: idempotency_key or str(uuid4())}
        return Call("POST", path("jobs"), document, json=self._placed(job), headers=headers)

    @operation
    def bulk_create(self, jobs: Sequence[Document], *, idempotency_key: str | None = None) -> Call[JobsMade]:
        """Create up to 10,000 jobs at once; each is accepted or rejected separately.

        Returns:
            `accepted` and `rejected` count them, `items` says for each of them its `status`, and its `id` or
            its `problem`.
        """
        body = {"jobs": [self._placed(job) for job in jobs]}
        headers = {IDEMPOTENCY_KEY: idempotency_key or str(uuid4())}
        return Call("POST", path("jobs", "bulk"), document, json=body, headers=headers)

    @operation
    def get(self, job_id: Id) -> Call[Job]:
        """Read a job with all its defaults, its next and its last run."""
        return Call("GET", path("jobs", job_id), document)

    @listing
    def list(
        self,
        *,
        namespace: str | None = None,
        name: str | None = None,
        search: str | None = None,
        state: str | Sequence[str] | None = None,
        type: str | None = None,  # noqa: A002 - the field of the job document
        handler: str | None = None,
        owner: str | None = None,
        priority: str | Sequence[str] | None = None,
        pool: str | None = None,
        labels: Mapping[str, str] | None = None,
        recurring: bool | None = None,
        limit: int | None = None,
    ) -> Call[Page[Job]]:
        """List jobs: iterate over all of them, or get a `page()`.

        Args:
            namespace: only of this namespace.
            name: exactly this name.
            search: part of a name or of a label.
            state: one of, or several of, active, paused, completed, cancelled, broken.
            type: the type of the job.
            handler: the handler of Python jobs.
            owner: exactly this owner.
            priority: high, normal or low; one or several.
            pool: exactly this pool.
            labels: all of these labels.
            recurring: those with a schedule, or those without.
            limit: the size of a page, 1 to 200.
        """
        params = {
            "namespace": namespace or self.namespace,
            "name": name,
            "search": search,
            "state": state,
            "type": type,
            "handler": handler,
            "owner": owner,
            "priority": priority,
            "pool": pool,
            "label": [f"{key}={value}" for key, value in labels.items()] if labels else None,
            "recurring": recurring,
            "limit": limit,
        }
        return Call("GET", path("jobs"), page, params)

    @operation
    def replace(self, job_id: Id, job: Document, *, if_match: str | None = None) -> Call[Job]:
        """Replace a job's whole document: fields that are left out return to their defaults.

        Args:
            job_id: the job's id.
            job: the new document.
            if_match: the job's `etag` as it was read; if the job has changed since, the call is refused
                (412).
        """
        return Call("PUT", path("jobs", job_id), document, json=dict(job), headers={"If-Match": if_match})

    @operation
    def patch(self, job_id: Id, changes: Document, *, if_match: str | None = None) -> Call[Job]:
        """Change some fields of a job (RFC 7396: null removes a field); claimed runs keep the old values."""
        headers = {"If-Match": if_match, "Content-Type": "application/merge-patch+json"}
        return Call("PATCH", path("jobs", job_id), document, json=dict(changes), headers=headers)

    @operation
    def delete(self, job_id: Id, *, if_match: str | None = None) -> Call[ChangedJob]:
        """Delete a job: it is never due again, and runs that are not running yet are cancelled."""
        return Call("DELETE", path("jobs", job_id), document, headers={"If-Match": if_match})

    @operation
    def cancel(
        self, job_id: Id, reason: str | None = None, *, if_match: str | None = None
    ) -> Call[ChangedJob]:
        """Cancel a job and its unfinished runs."""
        return self._order(job_id, "cancel", {"reason": reason}, if_match)

    @operation
    def pause(
        self, job_id: Id, reason: str | None = None, *, if_match: str | None = None
    ) -> Call[ChangedJob]:
        """Pause a job until it is resumed."""
        return self._order(job_id, "pause", {"reason": reason}, if_match)

    @operation
    def resume(
        self, job_id: Id, missed: Literal["skip", "latest", "all"] = "skip", *, if_match: str | None = None
    ) -> Call[ChangedJob]:
        """Resume a paused job.

        Args:
            job_id: the job's id.
            missed: what happens to the instants that came due during the pause.
            if_match: the job's `etag` as it was read.
        """
        return self._order(job_id, "resume", {"missed": missed}, if_match)

    @operation
    def trigger(
        self,
        job_id: Id,
        *,
        payload: Any = None,
        priority: str | int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[JobTriggered]:
        """Run a job once now, in addition to its schedule; returns the `run_id`.

        Args:
            job_id: the job's id.
            payload: replaces the job's own.
            priority: replaces the job's own.
            idempotency_key: see `create`.
        """
        given = {"payload": payload, "priority": priority}
        body = {name: value for name, value in given.items() if value is not None}
        headers = {IDEMPOTENCY_KEY: idempotency_key or str(uuid4())}
        return Call("POST", path("jobs", job_id, "trigger"), document, json=body, headers=headers)

    @operation
    def preview(
        self,
        job: Id | Document,
        *,
        count: int | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
    ) -> Call[PreviewAnswer]:
        """Show the next fires of a job, or of a document that is not submitted yet.

        Args:
            job: an id, or a job document.
            count: the number of fires.
            start: only fires after this instant; now by default.
            end: no fires after this instant.
        """
        since, until = start.isoformat() if start else None, end.isoformat() if end else None
        bounds = {"count": count, "from": since, "until": until}
        if not isinstance(job, Mapping):
            return Call("GET", path("jobs", job, "preview"), document, bounds)
        given = {"document": self._placed(job), **bounds}
        body = {name: value for name, value in given.items() if value is not None}
        return Call("POST", path("preview"), document, json=body, harmless=True)

    @operation
    def versions(self, job_id: Id) -> Call[Sequence[JobVersion]]:
        """Return the versions that a job has had."""
        return Call("GET", path("jobs", job_id, "versions"), items)

    @operation
    def version(self, job_id: Id, number: int) -> Call[JobVersion]:
        """Read one version of a job."""
        return Call("GET", path("jobs", job_id, "versions", number), document)

    @operation
    def diff(self, job_id: Id, since: int, until: int) -> Call[JobDiff]:
        """Return what changed between two versions of a job."""
        return Call("GET", path("jobs", job_id, "diff"), document, {"from": since, "to": until})

    @operation
    def why(self, job_id: Id) -> Call[Why]:
        """Explain why a job has not run."""
        return Call("GET", path("jobs", job_id, "why"), document)

    @operation
    def stats(self, job_id: Id) -> Call[JobStats]:
        """Return a job's usual figures and those of its last hour."""
        return Call("GET", path("jobs", job_id, "stats"), document)

    @listing
    def runs(self, job_id: Id, *, limit: int | None = None) -> Call[Page[RunSummary]]:
        """List the runs of a job, the newest first."""
        return Call("GET", path("jobs", job_id, "runs"), page, {"limit": limit})

    @listing
    def backfills(
        self, job_id: Id, *, state: str | Sequence[str] | None = None, limit: int | None = None
    ) -> Call[Page[Backfill]]:
        """List the backfills of a job, the newest first."""
        params = {"state": state, "limit": limit}
        return Call("GET", path("jobs", job_id, "backfills"), page, params)

    @operation
    def backfill(
        self,
        job_id: Id,
        start: datetime,
        end: datetime | None = None,
        *,
        mode: str | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> Call[BackfillPlan]:
        """Run a job for the instants of a period in the past.

        Args:
            job_id: the job's id.
            start: the first instant of the period.
            end: the end of the period, excluded; now by default.
            mode: missing (the default: instants that never ran), missing_and_failed, or all.
            dry_run: only return what would be created.
            idempotency_key: see `create`.
        """
        until = end.isoformat() if end else None
        given = {"from": start.isoformat(), "until": until, "mode": mode, "dry_run": dry_run}
        body = {name: value for name, value in given.items() if value is not None}
        headers = {IDEMPOTENCY_KEY: idempotency_key or str(uuid4())}
        return Call("POST", path("jobs", job_id, "backfills"), document, json=body, headers=headers)

    def _placed(self, job: Document) -> dict[str, Any]:
        """Return the document, with the client's namespace if it names none."""
        return {**({"namespace": self.namespace} if self.namespace else {}), **job}

    def _order(
        self, job_id: Id, order: str, body: Mapping[str, Any], if_match: str | None
    ) -> Call[ChangedJob]:
        said = {name: value for name, value in body.items() if value is not None}
        headers = {"If-Match": if_match, IDEMPOTENCY_KEY: str(uuid4())}
        return Call("POST", path("jobs", job_id, order), document, json=said, headers=headers)
