"""What jobs and runs depend on: namespaces, calendars, limits, workers and keys; and the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID, uuid4

from noonmark.client.answers import IDEMPOTENCY_KEY, Call, Page
from noonmark.client.binding import D, Group, listing, operation
from noonmark.client.parsing import document, items, nothing, page, path
from noonmark.client.types.alerts import AlertDetail, AlertItem
from noonmark.client.types.audit import AuditItem
from noonmark.client.types.backfills import Backfill, BackfillCancelled
from noonmark.client.types.ids import FoundIds
from noonmark.client.types.keys import Key, NewKey
from noonmark.client.types.lanes import Lane
from noonmark.client.types.me import Me
from noonmark.client.types.namespaces import Namespace, NamespaceChange, NamespaceDetail
from noonmark.client.types.rejections import Rejection, RejectionDetail
from noonmark.client.types.workers import Pool, Worker


class Namespaces(Group[D]):
    """`client.namespaces`."""

    @operation
    def list(self) -> Call[Sequence[Namespace]]:
        """Return the namespaces that the key has a role in."""
        return Call("GET", path("namespaces"), items)

    @operation
    def get(self, name: str) -> Call[NamespaceDetail]:
        """Read a namespace with its quotas and defaults."""
        return Call("GET", path("namespaces", name), document)

    @operation
    def put(self, name: str, body: Mapping[str, Any], *, if_match: str | None = None) -> Call[Namespace]:
        """Create or change a namespace: fields that are left out return to their defaults."""
        headers = {"If-Match": if_match}
        return Call("PUT", path("namespaces", name), document, json=dict(body), headers=headers)

    @operation
    def delete(self, name: str, *, if_match: str | None = None) -> Call[None]:
        """Remove a namespace without jobs."""
        return Call("DELETE", path("namespaces", name), nothing, headers={"If-Match": if_match})

    @operation
    def pause(self, name: str, reason: str | None = None) -> Call[NamespaceChange]:
        """Pause all jobs of a namespace."""
        body = {"reason": reason} if reason else {}
        headers = {IDEMPOTENCY_KEY: str(uuid4())}
        return Call("POST", path("namespaces", name, "pause"), document, json=body, headers=headers)

    @operation
    def resume(self, name: str, missed: Literal["skip", "latest", "all"] = "skip") -> Call[NamespaceChange]:
        """Resume the jobs of a namespace; `missed` as for `jobs.resume`."""
        headers, body = {IDEMPOTENCY_KEY: str(uuid4())}, {"missed": missed}
        return Call("POST", path("namespaces", name, "resume"), document, json=body, headers=headers)


class Named(Group[D]):
    """Named resources of a namespace: calendars and limits."""

    KIND: str

    @operation
    def list(self, *, namespace: str | None = None) -> Call[Sequence[dict[str, Any]]]:
        """Return all of a namespace."""
        return Call("GET", path(self.KIND), items, self._place(namespace))

    @operation
    def get(self, name: str, *, namespace: str | None = None) -> Call[dict[str, Any]]:
        """Read one."""
        return Call("GET", path(self.KIND, name), document, self._place(namespace))

    @operation
    def put(
        self,
        name: str,
        body: Mapping[str, Any],
        *,
        namespace: str | None = None,
        if_match: str | None = None,
    ) -> Call[dict[str, Any]]:
        """Create or change one."""
        place, headers = self._place(namespace), {"If-Match": if_match}
        return Call("PUT", path(self.KIND, name), document, place, json=dict(body), headers=headers)

    @operation
    def delete(self, name: str, *, namespace: str | None = None, if_match: str | None = None) -> Call[None]:
        """Remove one that no job names."""
        place, headers = self._place(namespace), {"If-Match": if_match}
        return Call("DELETE", path(self.KIND, name), nothing, place, headers=headers)

    def _place(self, namespace: str | None) -> dict[str, Any]:
        return {"namespace": namespace or self.namespace}


class Calendars(Named[D]):
    """`client.calendars`: days on which jobs run or do not run."""

    KIND = "calendars"


class Limits(Named[D]):
    """`client.limits`: how many runs may be in flight at once, and how fast they may start."""

    KIND = "limits"


class Workers(Group[D]):
    """`client.workers`."""

    @operation
    def list(self, *, pool: str | None = None, ended: bool | None = None) -> Call[Sequence[Worker]]:
        """Return the workers of all pools or of one, and what they can run.

        Args:
            pool: only its workers.
            ended: also those that have left or were lost.
        """
        return Call("GET", path("workers"), items, {"pool": pool, "ended": ended})


class Pools(Group[D]):
    """`client.pools`: which workers can run a job."""

    @operation
    def list(self) -> Call[Sequence[Pool]]:
        """Return the pools that jobs can name."""
        return Call("GET", path("pools"), items)


class Lanes(Group[D]):
    """`client.lanes`: what waits for workers, by pool and priority."""

    @operation
    def list(self, *, pool: str | None = None) -> Call[Sequence[Lane]]:
        """Return each lane of all pools or of one, with its backlog."""
        return Call("GET", path("lanes"), items, {"pool": pool})


class Rejections(Group[D]):
    """`client.rejections`: events on Kafka that were rejected."""

    @listing
    def list(
        self,
        *,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
    ) -> Call[Page[Rejection]]:
        """List them, the newest first: iterate over all of them, or get a `page()`.

        Args:
            source: only events of this source.
            since: received at or after this instant.
            until: received before this instant.
            limit: the size of a page, 1 to 200.
        """
        params = {"source": source, "since": since, "until": until, "limit": limit}
        return Call("GET", path("rejections"), page, params)

    @operation
    def get(self, rejection_id: str) -> Call[RejectionDetail]:
        """Read one with its problems and the received bytes."""
        return Call("GET", path("rejections", rejection_id), document)


class Backfills(Group[D]):
    """`client.backfills`; `client.jobs.backfill` creates one."""

    @listing
    def list(
        self,
        *,
        namespace: str | None = None,
        state: str | Sequence[str] | None = None,
        limit: int | None = None,
    ) -> Call[Page[Backfill]]:
        """List the backfills of a namespace, the newest first.

        Args:
            namespace: the namespace; by default that of the client.
            state: only backfills in one of these states.
            limit: rows of one page, 1 to 200.
        """
        params = {"namespace": namespace, "state": state, "limit": limit}
        return Call("GET", path("backfills"), page, params)

    @operation
    def get(self, backfill_id: str) -> Call[Backfill]:
        """Read the progress of a backfill."""
        return Call("GET", path("backfills", backfill_id), document)

    @operation
    def cancel(
        self, backfill_id: str, reason: str | None = None, *, runs: bool = False
    ) -> Call[BackfillCancelled]:
        """Stop a backfill.

        Args:
            backfill_id: the backfill's id.
            reason: a text for people.
            runs: also cancel the runs that it has queued; by default they run.
        """
        body = {"runs": runs, **({"reason": reason} if reason else {})}
        headers = {IDEMPOTENCY_KEY: str(uuid4())}
        return Call("POST", path("backfills", backfill_id, "cancel"), document, json=body, headers=headers)


class Ids(Group[D]):
    """`client.ids`: jobs, runs, backfills and alerts by the first characters of their ids."""

    @operation
    def find(self, prefix: str, *, kind: str | None = None, state: str | None = None) -> Call[FoundIds]:
        """Return up to 10 jobs and runs that the key can read, of all namespaces; with `kind`, of that kind.

        Args:
            prefix: at least the first 8 characters of the id.
            kind: job, run, backfill or alert.
            state: only those in this state.
        """
        return Call("GET", path("ids"), document, {"prefix": prefix, "kind": kind, "state": state})


class Keys(Group[D]):
    """`client.keys`: API keys."""

    @operation
    def create(self, body: Mapping[str, Any]) -> Call[NewKey]:
        """Create a key; its secret is only in this response, so the call is never retried."""
        return Call("POST", path("keys"), document, json=dict(body))

    @listing
    def list(
        self, *, namespace: str | None = None, ended: bool | None = None, limit: int | None = None
    ) -> Call[Page[Key]]:
        """List keys without their secrets.

        Args:
            namespace: only keys with a role in it.
            ended: also revoked and expired ones.
            limit: the size of a page, 1 to 200.
        """
        params = {"namespace": namespace or self.namespace, "ended": ended, "limit": limit}
        return Call("GET", path("keys"), page, params)

    @operation
    def me(self) -> Call[Me]:
        """Return the owner of the client's key, and what it may do."""
        return Call("GET", path("me"), document)

    @operation
    def get(self, key_id: str) -> Call[Key]:
        """Read a key, without its secret."""
        return Call("GET", path("keys", key_id), document)

    @operation
    def revoke(self, key_id: str) -> Call[None]:
        """Make a key invalid at once."""
        return Call("DELETE", path("keys", key_id), nothing)


class Alerts(Group[D]):
    """`client.alerts`: what the observer found wrong."""

    @listing
    def list(
        self,
        *,
        state: Literal["open", "resolved", "all"] | None = None,
        kind: str | None = None,
        namespace: str | None = None,
        job_id: UUID | str | None = None,
        limit: int | None = None,
    ) -> Call[Page[AlertItem]]:
        """List them, the newest first: iterate over all of them, or get a `page()`.

        Args:
            state: open ones by default.
            kind: runaway, late, stuck, failing, dead or silent.
            namespace: only of this namespace; by default of all that the key may read.
            job_id: only about this job.
            limit: the size of a page, 1 to 200.
        """
        params = {
            "state": state,
            "kind": kind,
            "namespace": namespace or self.namespace,
            "job_id": job_id,
            "limit": limit,
        }
        return Call("GET", path("alerts"), page, params)

    @operation
    def get(self, alert_id: UUID | str) -> Call[AlertDetail]:
        """Read one with its figures, and what was sent to each channel."""
        return Call("GET", path("alerts", alert_id), document)


class Audit(Group[D]):
    """`client.audit`: who changed what, and who was denied."""

    @listing
    def list(
        self,
        *,
        namespace: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        object: str | None = None,  # noqa: A002 - the field's name
        outcome: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
    ) -> Call[Page[AuditItem]]:
        """List entries, the newest first: iterate over all of them, or get a `page()`.

        Args:
            namespace: the namespace of the action.
            actor: id of the user, such as `key:<key id>`.
            action: the action, such as `job.pause`.
            object: the changed object, such as `job:<id>`.
            outcome: done, denied or failed.
            since: the earliest time.
            until: only before this time.
            limit: the size of a page, 1 to 200.
        """
        params = {
            "namespace": namespace or self.namespace,
            "actor": actor,
            "action": action,
            "object": object,
            "outcome": outcome,
            "since": since,
            "until": until,
            "limit": limit,
        }
        return Call("GET", path("audit"), page, params)
