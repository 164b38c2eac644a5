"""Runs: read, wait for, follow, cancel and retry them; and dead letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID, uuid4

from noonmark.client.answers import IDEMPOTENCY_KEY, Call, Page
from noonmark.client.binding import D, Group, listing, operation
from noonmark.client.errors import WaitTimeoutError
from noonmark.client.following import streaming
from noonmark.client.parsing import document, items, page, path
from noonmark.client.steps import Steps, Wait, execute
from noonmark.client.types.dead_letters import (
    DeadLetter,
    DeadLetterChange,
    DeadLetterDetail,
    DeadLetterGroup,
)
from noonmark.client.types.runs import Run, RunChange, RunHold, RunLogs, RunsCancelled, RunSummary
from noonmark.client.types.why import Why
from noonmark.client.types.workflows import TaskSummary, WorkflowGraph

Id = UUID | str

ENDED: Final = frozenset({"succeeded", "dead", "unknown", "cancelled", "skipped", "discarded"})
"""States that a run does not leave automatically."""

_FIRST_POLL_SECONDS: Final = 0.1
_SLOWEST_POLL_SECONDS: Final = 5.0


class Runs(Group[D]):
    """`client.runs`."""

    @operation
    def get(self, run_id: Id) -> Call[Run]:
        """Read a run with its attempts."""
        return Call("GET", path("runs", run_id), document)

    @listing
    def list(
        self,
        *,
        namespace: str | None = None,
        job_id: Id | None = None,
        job_name: str | None = None,
        state: str | Sequence[str] | None = None,
        reason: str | Sequence[str] | None = None,
        priority: str | Sequence[str] | None = None,
        pool: str | None = None,
        origin: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        tasks: bool | None = None,
        workflow_id: Id | None = None,
        limit: int | None = None,
    ) -> Call[Page[RunSummary]]:
        """List runs, the newest first: iterate over all of them, or get a `page()`.

        Args:
            namespace: only of this namespace.
            job_id: only of this job.
            job_name: of the recurring job with this name, else of one-time jobs with it.
            state: one of, or several of, the states of a run.
            reason: why a run waits, was skipped, is dead or was cancelled; one or several.
            priority: high, normal or low; one or several.
            pool: exactly this pool.
            origin: what created the run: schedule, manual, backfill, event or task.
            since: the earliest due instant.
            until: only due before this instant.
            tasks: also the runs of workflows' tasks.
            workflow_id: only runs of the tasks of this workflow run.
            limit: the size of a page, 1 to 200.
        """
        params = {
            "namespace": namespace or self.namespace,
            "job_id": job_id,
            "job_name": job_name,
            "state": state,
            "reason": reason,
            "priority": priority,
            "pool": pool,
            "origin": origin,
            "since": since,
            "until": until,
            "tasks": tasks,
            "workflow_id": workflow_id,
            "limit": limit,
        }
        return Call("GET", path("runs"), page, params)

    @listing
    def tasks(
        self,
        run_id: Id,
        *,
        state: str | Sequence[str] | None = None,
        task: str | Sequence[str] | None = None,
        generation: int | None = None,
        failed_first: bool | None = None,
        limit: int | None = None,
    ) -> Call[Page[TaskSummary]]:
        """List the tasks of a workflow run in their order, each with its newest run.

        Args:
            run_id: id of the workflow run.
            state: one of, or several of, the states of a run, or `undecided` for tasks without a run.
            task: only the tasks with these keys; one or several.
            generation: the runs of this generation, instead of the newest ones.
            failed_first: tasks that failed come before all others.
            limit: the size of a page, 1 to 200.
        """
        params = {
            "state": state,
            "task": task,
            "generation": generation,
            "failed_first": failed_first,
            "limit": limit,
        }
        return Call("GET", path("runs", run_id, "tasks"), page, params)

    @operation
    def graph(self, run_id: Id) -> Call[WorkflowGraph]:
        """Read the graph of a workflow run, with the states of its tasks."""
        return Call("GET", path("runs", run_id, "graph"), document)

    @operation
    def logs(self, run_id: Id, *, attempt: int | None = None) -> Call[RunLogs]:
        """Read what the attempts of a run, or one of them, printed and logged so far."""
        return Call("GET", path("runs", run_id, "logs"), document, {"attempt": attempt})

    @streaming
    def follow_logs(self, run_id: Id, *, attempt: int | None = None) -> Call[Any]:
        """Follow the output of a run's attempts while they run; a broken stream is resumed.

        The data of an event `output` has `attempt`, `fence`, `stream` (stdout, stderr or log) and `text`; an
        event `gap` has `bytes`, the number that were dropped there; an event `lost` has the `worker` that was
        lost in an attempt. The last event is `end` with the `state` of the finished run.

        Args:
            run_id: id of the run.
            attempt: only the output of this attempt.
        """
        params = {"attempt": attempt, "follow": True}
        return Call("GET", path("runs", run_id, "logs"), document, params)

    @operation
    def cancel(
        self, run_id: Id, reason: str | None = None, *, if_match: str | None = None
    ) -> Call[RunChange]:
        """Cancel a run: at once if no worker has it, else its worker is asked to stop."""
        body = {"reason": reason} if reason else {}
        headers = {"If-Match": if_match, IDEMPOTENCY_KEY: str(uuid4())}
        return Call("POST", path("runs", run_id, "cancel"), document, json=body, headers=headers)

    @operation
    def cancel_many(
        self,
        chosen: Mapping[str, Any],
        *,
        reason: str | None = None,
        dry_run: bool = False,
        after: str | None = None,
        limit: int | None = None,
    ) -> Call[RunsCancelled]:
        """Cancel unfinished runs, at most 1,000 in one call.

        Args:
            chosen: the filter; an empty one means the whole namespace.
            reason: a text for people.
            dry_run: only count them.
            after: `next_after` of the previous call, to continue there.
            limit: the most runs that this call cancels.
        """
        more = {"reason": reason, "dry_run": dry_run, "after": after, "limit": limit}
        return _over(self, path("runs", "cancel"), chosen, more)

    @operation
    def retry(self, run_id: Id, *, if_match: str | None = None) -> Call[RunChange]:
        """Queue a dead run again."""
        headers = {"If-Match": if_match, IDEMPOTENCY_KEY: str(uuid4())}
        return Call("POST", path("runs", run_id, "retry"), document, json={}, headers=headers)

    @operation
    def hold(self, run_id: Id, *, if_match: str | None = None) -> Call[RunHold]:
        """Hold an open workflow run: no more of its tasks start until it is released."""
        headers = {"If-Match": if_match, IDEMPOTENCY_KEY: str(uuid4())}
        return Call("POST", path("runs", run_id, "hold"), document, json={}, headers=headers)

    @operation
    def release(self, run_id: Id, *, if_match: str | None = None) -> Call[RunHold]:
        """Let a held workflow run go on."""
        headers = {"If-Match": if_match, IDEMPOTENCY_KEY: str(uuid4())}
        return Call("POST", path("runs", run_id, "release"), document, json={}, headers=headers)

    @operation
    def why(self, run_id: Id, *, task: str | None = None) -> Call[Why]:
        """Explain why a run has not been executed.

        Args:
            run_id: id of the run.
            task: of a workflow run: key of the task to explain, also if it has no run yet.
        """
        return Call("GET", path("runs", run_id, "why"), document, {"task": task})

    @operation
    def wait(self, run_id: Id, timeout: float = 300.0) -> Steps[Run]:
        """Wait until a run has ended with any outcome; returns the run.

        Args:
            run_id: the run's id.
            timeout: seconds.

        Raises:
            WaitTimeoutError: it has not ended in this time.
        """
        retries = self.driver.retries
        end = retries.monotonic() + timeout
        pause = _FIRST_POLL_SECONDS
        while True:
            query: Call[Run] = Call("GET", path("runs", run_id), document)
            run = yield from execute(query, retries, self.driver.timeout)
            if run["state"] in ENDED:
                return run
            left = end - retries.monotonic()
            if left <= 0:
                raise WaitTimeoutError(f"run {run_id} is still {run['state']} after {timeout:g} s")
            yield Wait(min(pause, left))
            pause = min(pause * 1.5, _SLOWEST_POLL_SECONDS)

    @streaming
    def events(self, *, namespace: str | None = None, job_id: Id | None = None) -> Call[Any]:
        """Follow the lifecycle events of runs; a broken stream is resumed.

        Args:
            namespace: only of this namespace.
            job_id: only of this job.
        """
        params = {"namespace": namespace or self.namespace, "job": job_id}
        return Call("GET", path("events"), document, params)


class DeadLetters(Group[D]):
    """`client.dead_letters`: runs whose attempts are used up."""

    @listing
    def list(
        self,
        *,
        namespace: str | None = None,
        job_id: Id | None = None,
        job_name: str | None = None,
        fingerprint: str | None = None,
        reason: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
    ) -> Call[Page[DeadLetter]]:
        """List dead letters, the newest death first: iterate over all of them, or get a `page()`.

        Args:
            namespace: only of this namespace.
            job_id: only of this job.
            job_name: of jobs with this name.
            fingerprint: with this failure fingerprint.
            reason: the reason of the death.
            since: died at or after this instant.
            until: died before this instant.
            limit: the size of a page, 1 to 200.
        """
        params = {
            "namespace": namespace or self.namespace,
            "job_id": job_id,
            "job_name": job_name,
            "fingerprint": fingerprint,
            "reason": reason,
            "since": since,
            "until": until,
            "limit": limit,
        }
        return Call("GET", path("dead-letters"), page, params)

    @operation
    def groups(
        self,
        *,
        namespace: str | None = None,
        job_id: Id | None = None,
        job_name: str | None = None,
        reason: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
    ) -> Call[Sequence[DeadLetterGroup]]:
        """Count dead letters by the fingerprint of their failure, the most frequent first.

        The arguments are those of `list`.
        """
        params = {
            "namespace": namespace or self.namespace,
            "job_id": job_id,
            "job_name": job_name,
            "reason": reason,
            "since": since,
            "until": until,
            "limit": limit,
        }
        return Call("GET", path("dead-letters", "groups"), items, params)

    @operation
    def get(self, run_id: Id) -> Call[DeadLetterDetail]:
        """Read a dead letter with its history."""
        return Call("GET", path("dead-letters", run_id), document)

    @operation
    def redrive(
        self,
        chosen: Mapping[str, Any],
        *,
        dry_run: bool = False,
        after: Id | None = None,
        limit: int | None = None,
    ) -> Call[DeadLetterChange]:
        """Queue dead runs again, at most 1,000 in one call.

        Args:
            chosen: the filter; an empty one means the whole namespace.
            dry_run: only count them.
            after: `next_after` of the previous call, to continue there.
            limit: the most runs that this call checks.
        """
        more = {"dry_run": dry_run, "after": after, "limit": limit}
        return _over(self, path("dead-letters", "redrive"), chosen, {"all": not chosen or None} | more)

    @operation
    def discard(
        self,
        chosen: Mapping[str, Any],
        *,
        reason: str | None = None,
        dry_run: bool = False,
        after: Id | None = None,
        limit: int | None = None,
    ) -> Call[DeadLetterChange]:
        """Discard dead runs permanently, at most 1,000 in one call.

        Args:
            chosen: the filter; an empty one means the whole namespace.
            reason: a text for people.
            dry_run: only count them.
            after: `next_after` of the previous call, to continue there.
            limit: the most runs that this call checks.
        """
        more = {"dry_run": dry_run, "after": after, "limit": limit, "reason": reason}
        return _over(self, path("dead-letters", "discard"), chosen, {"all": not chosen or None} | more)


def _over(group: Group[D], where: str, chosen: Mapping[str, Any], more: Mapping[str, Any]) -> Call[Any]:
    """Make the call of an action on all runs of a filter."""
    place = {"namespace": group.namespace} if group.namespace else {}
    given = {
        name: str(value) if name == "after" else value for name, value in more.items() if value is not None
    }
    body = {"filter": {**place, **chosen}, **given}
    return Call("POST", where, document, json=body, headers={IDEMPOTENCY_KEY: str(uuid4())})
