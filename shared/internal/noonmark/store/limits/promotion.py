"""The promotion pass: waiting runs are queued when there is capacity. One pass runs at a time.

Every waiting run is in the queue of one gate. A pass reads only queues whose gate has capacity, and about as
many runs of each as fit. A run that another gate blocks moves to that gate's queue. So the cost of a pass
depends on what it can queue, not on what waits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson
import psycopg

from noonmark.core.faults import hit
from noonmark.core.planning.promotion import (
    UNCHECKED_QUEUE,
    Candidate,
    Decision,
    Gate,
    GateCapacity,
    GateLimit,
    filled,
    gates_of,
    grant,
)
from noonmark.core.states import Overlap, SkipReason, WaitReason
from noonmark.core.workflows import WORKFLOW_POOL
from noonmark.store.database.row_types import ChangedRun, row_of
from noonmark.store.database.statements import statement
from noonmark.store.limits.slots import acquire_slots, release_slots
from noonmark.store.outcomes.events import EventTopics, announce, settled_of

_LOCK: Final = 0x6E6F6F6E_70726F6D
"""Advisory lock of the running pass."""

_QUEUES_SQL_LIMIT: Final = 1_000
_PER_QUEUE: Final = 500
_PER_PASS: Final = 5_000
_SLACK: Final = 20
"""Runs of a queue that are read beyond its capacity, because some may have to wait for another gate."""

_LATE: Final = 500
_BUSY_SECONDS: Final = 0.02


@dataclass(slots=True)
class Promoted:
    """What a pass did.

    Attributes:
        queued: queued runs by lane.
        expired: runs by lane whose start deadline had passed.
        blocked: checked runs that continue to wait, by reason.
        more: whether another pass should follow at once.
        next_seconds: the time until the next token that a run waits for; None: no run waits for one.
        from_key: where the next pass continues if this one did not reach the last queue.
    """

    queued: Counter[int] = field(default_factory=Counter)
    expired: Counter[int] = field(default_factory=Counter)
    blocked: Counter[str] = field(default_factory=Counter)
    more: bool = False
    next_seconds: float | None = None
    from_key: UUID = UNCHECKED_QUEUE


class _WaitQueue(NamedTuple):
    """A queue of waiting runs, as its first row describes it."""

    key: UUID
    reason: str
    namespace: str
    lane: int
    limit_name: str | None
    limit_key: str | None

    def gate(self) -> Gate:
        """Return the gate of the queue; for a limit key that no job uses any more, the limit itself."""
        if self.reason == WaitReason.LIMIT and self.limit_name is not None:
            return Gate(self.key, WaitReason.LIMIT, self.namespace, self.limit_name, self.limit_key)
        return Gate(self.key, WaitReason(self.reason), self.namespace)


class _Waiting(NamedTuple):
    """A row of `list_wait_candidates`."""

    run_id: UUID
    scheduled_for: datetime
    job_id: UUID
    namespace: str
    lane: int
    since: datetime
    key: UUID
    limits: list[tuple[str, str | None]] | None
    overlap: str | None
    held_keys: list[UUID] | None
    has_overlap_slot: bool
    pool: str | None


def has_waiting_runs(connection: psycopg.Connection) -> bool:
    """Return whether a pass has anything to check."""
    return connection.execute(statement("probe_waits")).fetchone() is not None


def count_waiting(connection: psycopg.Connection) -> dict[str, int]:
    """Count waiting runs by reason."""
    return dict(connection.execute(statement("count_waits")).fetchall())


def promote(
    connection: psycopg.Connection,
    topics: EventTopics,
    *,
    install_shards: int,
    from_key: UUID = UNCHECKED_QUEUE,
) -> Promoted:
    """Queue waiting runs as far as there is capacity, in one transaction.

    Args:
        connection: no transaction is open.
        topics: where verdicts are announced.
        install_shards: the number of shards of the installation.
        from_key: where the previous pass stopped.

    Raises:
        psycopg.Error: nothing was done; try again.
    """
    done = Promoted()
    with connection.transaction():
        row = connection.execute("select pg_try_advisory_xact_lock(%s)", [_LOCK]).fetchone()
        if not (row and row[0]):
            # Another trigger's pass may not see the change that caused this one: try again after it.
            return Promoted(next_seconds=_BUSY_SECONDS, from_key=from_key)
        _expire(connection, topics, install_shards, done)
        _Pass(connection, done).run(from_key)
        if done.queued:
            hit("trigger.before_commit")
    if done.queued:
        hit("trigger.after_commit")
    return done


def _expire(connection: psycopg.Connection, topics: EventTopics, install_shards: int, done: Promoted) -> None:
    late = connection.execute(statement("list_expired_waits"), {"limit": _LATE}).fetchall()
    if not late:
        return
    with connection.cursor(row_factory=row_of(ChangedRun)) as cursor:
        ended = cursor.execute(
            statement("skip_waits"), {**_span(late), "verdict": SkipReason.START_DEADLINE.value}
        ).fetchall()
    release_slots(connection, [(run.id, run.job_id) for run in ended if run.holds_slot])
    announce(connection, topics, [settled_of(run) for run in ended], shards=install_shards)
    done.expired.update(run.lane for run in ended)
    done.more = len(late) == _LATE


class _Pass:
    """One pass, in its transaction."""

    def __init__(self, connection: psycopg.Connection, done: Promoted) -> None:
        self._connection = connection
        self._done = done
        self._capacities: dict[UUID, GateCapacity] = {}
        self._stepped_back_to: set[UUID] = set()
        """Buckets whose fill time is in the future, because the clock went back: they are dated again."""

    def run(self, from_key: UUID) -> None:
        """Check the queues from a key on, and queue the runs for which there is capacity."""
        queues = self._read_queues(from_key)
        self._load_capacities(queue.gate() for queue in queues if queue.key != UNCHECKED_QUEUE)
        waiting, cut = self._waiting(queues)
        candidates = {one.run_id: self._candidate(one) for one in waiting}
        self._load_capacities(gate for candidate in candidates.values() for gate in candidate.gates)
        decisions = self._slots_first(grant(candidates.values(), self._capacities))
        rows = {one.run_id: one for one in waiting}
        queued = self._queue([d for d in decisions if d.blocked_by is None], rows)
        blocked = [d for d in decisions if d.blocked_by is not None]
        self._fill([key for d in decisions if d.candidate.run_id in queued for key in d.tokens])
        self._move_waits(blocked, rows)
        # A moved run makes space for others in the queue: more of them may be able to go.
        moved = sum(
            d.blocked_by is not None and d.blocked_by.key != rows[d.candidate.run_id].key for d in blocked
        )
        self._done.more |= (cut and bool(queued or moved)) or self._done.from_key != UNCHECKED_QUEUE
        self._done.next_seconds = self._next_token(queues)

    def _read_queues(self, from_key: UUID) -> list[_WaitQueue]:
        with self._connection.cursor(row_factory=row_of(_WaitQueue)) as cursor:
            queues = cursor.execute(
                statement("list_wait_queues"), {"from_key": from_key, "limit": _QUEUES_SQL_LIMIT}
            ).fetchall()
        if len(queues) == _QUEUES_SQL_LIMIT:
            self._done.from_key = queues.pop().key
        return queues

    def _load_capacities(self, gates: Iterable[Gate]) -> None:
        """Read the rules and the usage of gates that are not loaded yet."""
        unread = {gate.key: gate for gate in gates if gate.key not in self._capacities}
        if not unread:
            return
        rules = self._rules(list(unread.values()))
        rows = self._connection.execute(statement("read_gate_usage"), {"keys": list(unread)})
        for key, numbers, overlap_used, tokens, age in rows:
            rule = rules.get(key)
            if rule is None:
                continue  # the limit was deleted or the cap removed: open
            if age is not None and age < 0:
                self._stepped_back_to.add(key)
            used = {0} if overlap_used else set(numbers or ())
            self._capacities[key] = GateCapacity(rule, used, filled(tokens, age or 0.0, rule))

    def _rules(self, gates: Sequence[Gate]) -> dict[UUID, GateLimit]:
        limits = {(g.namespace, g.name) for g in gates if g.reason is WaitReason.LIMIT}
        capped = {g.namespace for g in gates if g.reason is WaitReason.FAIRNESS}
        stored: dict[tuple[str, str | None], GateLimit] = {}
        if limits:
            wanted = sorted(limits, key=str)
            found = self._connection.execute(
                statement("read_gate_limits"),
                {"namespaces": [one[0] for one in wanted], "names": [one[1] for one in wanted]},
            )
            for namespace, name, *figures in found:
                stored[namespace, name] = rule_of(*figures)
        caps: dict[str, int] = {}
        if capped:
            caps = dict(
                self._connection.execute(
                    "select name, max_in_flight from namespaces"
                    " where name = any (%s) and max_in_flight is not null",
                    [list(capped)],
                ).fetchall()
            )
        rules: dict[UUID, GateLimit] = {}
        for gate in gates:
            if gate.reason is WaitReason.OVERLAP:
                rules[gate.key] = GateLimit(1)
            elif gate.reason is WaitReason.FAIRNESS and gate.namespace in caps:
                rules[gate.key] = GateLimit(caps[gate.namespace])
            elif gate.reason is WaitReason.LIMIT and (gate.namespace, gate.name) in stored:
                rules[gate.key] = stored[gate.namespace, gate.name]
        return rules

    def _waiting(self, queues: Sequence[_WaitQueue]) -> tuple[list[_Waiting], bool]:
        """Read the first runs of each queue with capacity; return also whether a queue may have more."""
        most: dict[UUID, int] = {}
        budget = _PER_PASS
        for queue in queues:
            if not budget:
                self._done.from_key = queue.key
                break
            capacity = self._capacities.get(queue.key)
            left = capacity.left if capacity is not None else None
            wanted = _PER_QUEUE if left is None else min(_PER_QUEUE, left + _SLACK if left else 0)
            wanted = min(wanted, budget)
            if wanted:
                most[queue.key] = wanted
                budget -= wanted
        if not most:
            return [], False
        with self._connection.cursor(row_factory=row_of(_Waiting)) as cursor:
            rows = cursor.execute(
                statement("list_wait_candidates"), {"keys": list(most), "most": list(most.values())}
            ).fetchall()
        read = Counter(row.key for row in rows)
        return rows, any(read[key] == number for key, number in most.items())

    def _candidate(self, one: _Waiting) -> Candidate:
        holds = frozenset([*(one.held_keys or ()), *([one.job_id] if one.has_overlap_slot else ())])
        limits = [(name, part) for name, part in one.limits or ()]
        overlap = one.overlap or Overlap.ALLOW.value
        if overlap == Overlap.SKIP:
            overlap = Overlap.QUEUE_ONE.value  # a redriven run has no slot yet, and is not skipped for that
        # The cap's gate is included for all others: without a cap it has no rule and is open.
        capped = one.pool != WORKFLOW_POOL
        gates = gates_of(one.job_id, one.namespace, one.lane, limits, overlap, capped=capped)
        return Candidate(one.run_id, one.namespace, one.lane, one.since, gates, holds)

    def _slots_first(self, decisions: Sequence[Decision]) -> list[Decision]:
        """Acquire the overlap slots that were granted; another transaction may have been faster."""
        wanted = [d for d in decisions if d.overlap]
        rows = [(d.candidate.run_id, _overlap(d).key) for d in wanted]
        got = acquire_slots(self._connection, rows)
        for decision in wanted:
            if decision.candidate.run_id not in got:
                decision.overlap, decision.blocked_by = False, _overlap(decision)
        return list(decisions)

    def _queue(self, granted: Sequence[Decision], rows: Mapping[UUID, _Waiting]) -> set[UUID]:
        """Queue runs; release what was acquired for runs that were paused or ended meanwhile."""
        if not granted:
            return set()
        ids = [d.candidate.run_id for d in granted]
        promoted = self._connection.execute(
            statement("promote_runs"),
            {
                **_span([(run_id, rows[run_id].scheduled_for) for run_id in ids]),
                "holders": [d.candidate.run_id for d in granted if d.slots or d.overlap],
            },
        ).fetchall()
        self._done.queued.update(lane for _, lane in promoted)
        queued = {run_id for run_id, _ in promoted}
        refused = [d for d in granted if d.candidate.run_id not in queued]
        release_slots(self._connection, [(d.candidate.run_id, _overlap(d).key) for d in refused if d.overlap])
        self._acquire([d for d in granted if d.candidate.run_id in queued])
        return queued

    def _acquire(self, granted: Sequence[Decision]) -> None:
        names = {gate.key: gate for d in granted for gate in d.candidate.gates}
        slots = [(key, number, d.candidate.run_id) for d in granted for key, number in d.slots]
        if slots:
            self._connection.execute(
                statement("acquire_limit_slots"),
                {
                    "keys": [key for key, _, _ in slots],
                    "numbers": [number for _, number, _ in slots],
                    "run_ids": [run_id for _, _, run_id in slots],
                    "namespaces": [names[key].namespace for key, _, _ in slots],
                    "limit_names": [names[key].name for key, _, _ in slots],
                },
            )

    def _fill(self, used: Iterable[UUID]) -> None:
        """Write the tokens that are left in the buckets."""
        buckets = sorted({*used, *self._stepped_back_to})
        if buckets:
            self._connection.execute(
                statement("fill_buckets"),
                {"keys": buckets, "tokens": [self._capacities[key].tokens for key in buckets]},
            )

    def _move_waits(self, blocked: Sequence[Decision], rows: Mapping[UUID, _Waiting]) -> None:
        """Move blocked runs into the queues of the gates that block them."""
        moves = [
            (d.candidate.run_id, gate, d.overlap)
            for d in blocked
            if (gate := d.blocked_by) is not None and (d.overlap or gate.key != rows[d.candidate.run_id].key)
        ]
        self._done.blocked.update(d.blocked_by.reason.value for d in blocked if d.blocked_by is not None)
        groups: dict[tuple[str, bool], list[UUID]] = defaultdict(list)
        for run_id, gate, slotted in moves:
            groups[gate.reason.value, slotted].append(run_id)
        for (reason, slotted), ids in groups.items():
            shown = self._connection.execute(
                statement("update_run_wait_reasons"),
                {
                    **_span([(run_id, rows[run_id].scheduled_for) for run_id in ids]),
                    "reason": reason,
                    "slotted": slotted,
                },
            ).fetchall()
            if slotted:
                ended = set(ids) - {row[0] for row in shown}
                release_slots(self._connection, [(run_id, rows[run_id].job_id) for run_id in ended])
        if moves:
            self._connection.execute(
                statement("move_waits"),
                {
                    "ids": [run_id for run_id, _, _ in moves],
                    "targets": orjson.dumps(
                        {
                            str(run_id): [str(gate.key), gate.reason.value, gate.name, gate.part]
                            for run_id, gate, _ in moves
                        }
                    ).decode(),
                },
            )

    def _next_token(self, queues: Sequence[_WaitQueue]) -> float | None:
        waits = [
            self._capacities[queue.key].next_token_seconds
            for queue in queues
            if queue.key in self._capacities
        ]
        return min((seconds for seconds in waits if seconds is not None), default=None)


def rule_of(
    max_running: int | None, rate_count: int | None, rate_seconds: float | None, burst: int | None
) -> GateLimit:
    """Convert the figures of a limit to a rule. Without a burst, the bucket holds one period of the rate."""
    if rate_count is None or rate_seconds is None:
        return GateLimit(max_running)
    return GateLimit(max_running, rate_count / rate_seconds, float(burst or rate_count))


def _overlap(decision: Decision) -> Gate:
    return next(gate for gate in decision.candidate.gates if gate.reason is WaitReason.OVERLAP)


def _span(runs: Sequence[tuple[Any, ...]]) -> dict[str, object]:
    days = [run[1] for run in runs]
    return {"ids": [run[0] for run in runs], "first": min(days), "last": max(days)}
