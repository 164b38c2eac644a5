"""The pass that advances workflows: it takes what has ended, decides with pure code, and writes what follows.

One transaction. Whoever ends the run of a task leaves a timer (`noonmark.store.workflows.facts`); the pass
locks the open workflows that due timers are about, so two ends at one instant are counted one after the
other, and the timer, the state and the new runs change together or not at all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import psycopg

from noonmark.core.faults import hit
from noonmark.core.states import JobState, Lane, RunState
from noonmark.core.workflows.progress import TaskProgress
from noonmark.store.database.planned_once import planned_once
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement
from noonmark.store.documents.columns import NEVER
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.workflows import opening, stopping, writing
from noonmark.store.workflows.advanced import Advanced
from noonmark.store.workflows.compiled import CompiledVersions
from noonmark.store.workflows.instances import OpenWorkflow, TakenFacts
from noonmark.store.workflows.results import Instance, NotReadError, Results

_log = logging.getLogger(__name__)

_BROKEN_SECONDS: Final = 60.0
"""How soon a workflow is tried again that could not be advanced."""

_OPEN: Final = (RunState.RUNNING.value, RunState.CANCELLING.value)


class WorkflowPass:
    """Advances the workflows of the shards that a trigger owns."""

    def __init__(self, topics: EventTopics, *, shards: int) -> None:
        """Create the pass.

        Args:
            topics: where verdicts are announced.
            shards: the number of shards of the installation.
        """
        self._topics = topics
        self._shards = shards
        self._versions = CompiledVersions()

    def run(
        self, connection: psycopg.Connection, lane: Lane, shards: Sequence[int], limit: int, *, arrays: bool
    ) -> Advanced:
        """Take due timers of a lane and advance their workflows, in one transaction.

        Args:
            connection: no transaction is open.
            lane: the lane of the timers.
            shards: owned shards that have due timers.
            limit: the most timers to take.
            arrays: whether a row of the outbox has several runs.
        """
        try:
            return self._run(connection, lane, shards, limit, self._together, arrays=arrays)
        except Exception as error:
            if not _may_be_of_one(error):
                raise
            _log.exception("a pass over workflows failed; the workflow that is the cause is searched")
        return self._run(connection, lane, shards, limit, self._apart, arrays=arrays)

    def _run(
        self,
        connection: psycopg.Connection,
        lane: Lane,
        shards: Sequence[int],
        limit: int,
        work: Callable[..., Advanced],
        *,
        arrays: bool,
    ) -> Advanced:
        with connection.transaction():
            taken = _take(connection, lane, shards, limit)
            free = _without_parked(connection, [facts for facts in taken if _is_free(facts)])
            done = work(connection, free, arrays=arrays)
            done.facts = sum(len(facts.places) for facts in free)
            broken = {run_id for run_id, _ in done.broken}
            _postpone(connection, [facts for facts in free if facts.workflow_id in broken])
            _delete(connection, [facts for facts in free if facts.workflow_id not in broken])
            hit("workflow.before_commit")
        hit("workflow.after_commit")
        return done

    def _together(
        self, connection: psycopg.Connection, free: Sequence[TakenFacts], *, arrays: bool
    ) -> Advanced:
        """Advance workflows, all in one step."""
        done = Advanced()
        _drop_lost(connection, free)
        workflows = self._workflows(connection, free, done)
        advanced = _decide(connection, workflows, done)
        writing.write(connection, advanced, done, topics=self._topics, shards=self._shards, arrays=arrays)
        return done

    def _apart(self, connection: psycopg.Connection, free: Sequence[TakenFacts], *, arrays: bool) -> Advanced:
        """Advance workflows of which one fails: halves are tried until it is alone."""
        try:
            with connection.transaction():
                return self._together(connection, free, arrays=arrays)
        except Exception as error:
            if not _may_be_of_one(error):
                raise
            if len(free) == 1:
                return Advanced(broken=[(free[0].workflow_id, _text(error))])
        half, done = len(free) // 2, Advanced()
        for some in (free[:half], free[half:]):
            if some:
                done.add(self._apart(connection, some, arrays=arrays))
        return done

    def _workflows(
        self, connection: psycopg.Connection, taken: Sequence[TakenFacts], done: Advanced
    ) -> list[OpenWorkflow]:
        """Return the workflows to advance: those that are open, and those to open."""
        wanted = [
            facts
            for facts in taken
            if facts.state is not None and (facts.locked or facts.state == RunState.QUEUED)
        ]
        versions = self._versions.read(connection, {(one.job_id, one.job_version) for one in wanted})
        workflows = []
        for facts in wanted:
            compiled = versions.get((facts.job_id, facts.job_version))
            if compiled is None:
                done.broken.append((facts.workflow_id, "its version has no tasks, or they cannot be read"))
            else:
                workflows.append(OpenWorkflow.of(facts, compiled))
        going_on = [one for one in workflows if not one.is_new]
        stopping.stop(connection, going_on, self._topics, shards=self._shards)
        fit, unfit = opening.prepare(connection, [one for one in workflows if one.is_new])
        done.broken += [(one.facts.workflow_id, reason) for one, reason in unfit.items()]
        return going_on + fit


@dataclass(slots=True)
class Probe:
    """What is due.

    Attributes:
        due: shards with due timers, by lane.
        seconds: to the next timer, at most one.
    """

    due: dict[int, list[int]] = field(default_factory=dict)
    seconds: float = 1.0


def probe(connection: psycopg.Connection, shards: Sequence[int]) -> Probe:
    """Read what is due in these shards; one index probe for each lane of each."""
    found = Probe()
    for shard, lane, fire_at, now in connection.execute(
        planned_once("read_next_facts"), {"shards": list(shards)}
    ):
        if fire_at <= now:
            found.due.setdefault(lane, []).append(shard)
        else:
            found.seconds = min(found.seconds, max(0.001, (fire_at - now).total_seconds()))
    return found


def _is_free(facts: TakenFacts) -> bool:
    """Return whether nobody else deals with a workflow: another trigger, or who changes its job now."""
    if facts.state is None:
        return True  # there is no such run any more
    return facts.job_state is not None and (facts.locked or facts.state not in _OPEN)


def _without_parked(connection: psycopg.Connection, free: Sequence[TakenFacts]) -> Sequence[TakenFacts]:
    """Park until the resume what has ended in workflows whose job is paused; return the others.

    A timer of the workflow run itself is dealt with even then: it may have to stop.
    """
    parked = [
        facts
        for facts in free
        if facts.locked
        and not (facts.asked or facts.stopping)
        and (facts.job_state == JobState.PAUSED or _is_held(facts))
    ]
    if not parked:
        return free
    _postpone(connection, parked, until=NEVER)
    kept = {id(facts) for facts in parked}
    return [facts for facts in free if id(facts) not in kept]


def _is_held(facts: TakenFacts) -> bool:
    """Return whether a person holds the run; a cancel is not held back."""
    return facts.held_at is not None and facts.state != RunState.CANCELLING


def _decide(
    connection: psycopg.Connection, workflows: Sequence[OpenWorkflow], done: Advanced
) -> list[OpenWorkflow]:
    """Return the workflows that were advanced; one that cannot be is reported, and the others go on."""
    results, advanced, left = Results(connection), [], workflows
    wanted = list(_needed(workflows))
    while left:
        results.read_ahead(wanted)
        wanted, again = [], []
        for workflow in left:
            try:
                workflow.advance(results)
            except NotReadError as missing:
                again.append(workflow)
                wanted += [(missing.instance, missing.task), *_needed_later(workflow)]
            except Exception as error:  # noqa: BLE001 - one workflow must not stop the others
                _log.exception("workflow run %s cannot be advanced", workflow.facts.workflow_id)
                done.broken.append((workflow.facts.workflow_id, _text(error)))
            else:
                advanced.append(workflow)
        left = again
    return advanced


def _needed(workflows: Sequence[OpenWorkflow]) -> Iterator[tuple[Instance, int]]:
    """Yield the tasks whose results conditions will probably read, so that one statement reads them all."""
    for workflow in workflows:
        definition = workflow.compiled.definition
        for no, reached in workflow.ends:
            if reached is TaskProgress.SUCCEEDED and definition.conditional_edges[no]:
                yield workflow.instance, no
            for child in definition.children[no]:
                if (when := definition.tasks[child].when) is not None:
                    yield from ((workflow.instance, definition.numbers[key]) for key in when.reads)


def _needed_later(workflow: OpenWorkflow) -> Iterator[tuple[Instance, int]]:
    """Yield the tasks whose results a cascade of skips may read, however deep it is."""
    definition, progress = workflow.compiled.definition, workflow.progress
    ended = {no for no, reached in workflow.ends if reached is TaskProgress.SUCCEEDED}
    for task in definition.tasks:
        if task.when is None or progress[task.no] != TaskProgress.UNDECIDED:
            continue
        for read in map(definition.numbers.__getitem__, task.when.reads):
            if read in ended or progress[read] == TaskProgress.SUCCEEDED:
                yield workflow.instance, read


def _drop_lost(connection: psycopg.Connection, taken: Sequence[TakenFacts]) -> None:
    """Delete the states of workflow runs that are not in the ledger any more: nothing can come of them."""
    lost = [facts.workflow_id for facts in taken if facts.locked and facts.state is None]
    if lost:
        _log.error("workflow runs are not in the ledger any more: %s", ", ".join(map(str, lost)))
        connection.execute(statement("delete_lost_workflows"), {"ids": lost})


def _may_be_of_one(error: Exception) -> bool:
    """Whether what one workflow has in the database can be the cause, not the database or a rival."""
    return not isinstance(error, psycopg.Error) or isinstance(
        error,
        (
            psycopg.DataError,
            psycopg.IntegrityError,
            psycopg.InternalError,
            psycopg.errors.StatementTooComplex,
        ),
    )


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _take(connection: psycopg.Connection, lane: Lane, shards: Sequence[int], limit: int) -> list[TakenFacts]:
    with connection.cursor(row_factory=row_of(TakenFacts), binary=True) as cursor:
        return cursor.execute(
            statement("take_facts"),
            {"shards": list(shards), "lane": int(lane), "limit": max(1, limit // len(shards))},
        ).fetchall()


def _postpone(
    connection: psycopg.Connection, taken: Sequence[TakenFacts], *, until: datetime | None = None
) -> None:
    if taken:
        connection.execute(
            statement("postpone_facts"),
            {"places": _places(taken), "fire_at": until, "seconds": _BROKEN_SECONDS},
        )


def _delete(connection: psycopg.Connection, taken: Sequence[TakenFacts]) -> None:
    if taken:
        connection.execute(planned_once("delete_facts"), {"places": _places(taken)})


def _places(taken: Sequence[TakenFacts]) -> list[str]:
    return [place for facts in taken for place in facts.places]
