"""The pass that advances workflows: it takes what has ended, decides with pure code, and writes what follows.

One transaction. Whoever ends the run of a task leaves a timer (`noonmark.store.workflows.facts`); the pass
locks the open workflows that due timers are about, so two ends at one instant are counted one after the
other, and the timer, the state and the new runs change together or not at all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import psycopg

from noonmark.core.faults import hit
from noonmark.core.states import JobState, Lane, RunState
from noonmark.core.workflows.progress import TaskProgress
from noonmark.store.database.row_types import row_of
from noonmark.store.database.statements import statement
from noonmark.store.documents.columns import NEVER
from noonmark.store.outcomes.events import EventTopics
from noonmark.store.workflows import opening, stopping, writing
from noonmark.store.workflows.advanced import Advanced
from noonmark.store.workflows.compiled import CompiledVersions
from noonmark.store.workflows.instances import OpenWorkflow, TakenFacts
from noonmark.store.workflows.results import Instance, Results

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
        done = Advanced()
        with connection.transaction():
            taken = _take(connection, lane, shards, limit)
            free = _without_parked(connection, [facts for facts in taken if _is_free(facts)])
            done.facts = sum(len(facts.places) for facts in free)
            workflows = self._workflows(connection, free, done)
            advanced = _decide(connection, workflows, done)
            writing.write(connection, advanced, done, topics=self._topics, shards=self._shards, arrays=arrays)
            broken = {run_id for run_id, _ in done.broken}
            _postpone(connection, [facts for facts in free if facts.workflow_id in broken])
            _delete(connection, [facts for facts in free if facts.workflow_id not in broken])
            hit("trigger.before_commit")
        hit("trigger.after_commit")
        return done

    def _workflows(
        self, connection: psycopg.Connection, taken: Sequence[TakenFacts], done: Advanced
    ) -> list[OpenWorkflow]:
        """Return the workflows to advance: those that are open, and those to open."""
        wanted = [facts for facts in taken if facts.locked or facts.state == RunState.QUEUED]
        versions = self._versions.read(connection, {(one.job_id, one.job_version) for one in wanted})
        workflows = []
        for facts in wanted:
            compiled = versions.get((facts.job_id, facts.job_version))
            if compiled is None:
                done.broken.append((facts.workflow_id, "its version has no tasks"))
            else:
                workflows.append(OpenWorkflow.of(facts, compiled))
        unfit = opening.prepare(connection, [one for one in workflows if one.is_new])
        done.broken += [(one.facts.workflow_id, reason) for one, reason in unfit.items()]
        workflows = [one for one in workflows if one not in unfit]
        stopping.stop(
            connection, [one for one in workflows if not one.is_new], self._topics, shards=self._shards
        )
        return workflows


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
        statement("read_next_facts"), {"shards": list(shards)}
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
        and (facts.job_state == JobState.PAUSED or facts.held_at is not None)
    ]
    if not parked:
        return free
    _postpone(connection, parked, until=NEVER)
    kept = {id(facts) for facts in parked}
    return [facts for facts in free if id(facts) not in kept]


def _decide(
    connection: psycopg.Connection, workflows: Sequence[OpenWorkflow], done: Advanced
) -> list[OpenWorkflow]:
    """Return the workflows that were advanced; one that cannot be is reported, and the others go on."""
    results = Results(connection)
    results.read_ahead(_needed(workflows))
    advanced = []
    for workflow in workflows:
        try:
            workflow.advance(results)
        except psycopg.Error:
            raise
        except Exception as error:  # noqa: BLE001 - one workflow must not stop the others
            _log.exception("workflow run %s cannot be advanced", workflow.facts.workflow_id)
            done.broken.append((workflow.facts.workflow_id, f"{type(error).__name__}: {error}"))
        else:
            advanced.append(workflow)
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
        connection.execute(statement("delete_facts"), {"places": _places(taken)})


def _places(taken: Sequence[TakenFacts]) -> list[str]:
    return [place for facts in taken for place in facts.places]
