"""Which waiting runs may be queued now: pure arithmetic over limits, slots and tokens.

A gate is a limit that a run must pass: its job's overlap slot, a limit, its namespace's cap. A run waits in
the queue of one gate at a time, the first without capacity for it, so that it never blocks runs that wait for
something else.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from noonmark.core.states import Lane, Overlap, WaitReason

UNCHECKED_QUEUE: Final = UUID(int=0)
"""Key of the queue of runs whose gates have not been checked yet; its capacity is unlimited."""

QUEUEING_OVERLAPS: Final = frozenset({Overlap.QUEUE_ONE, Overlap.CANCEL_RUNNING})
"""Overlap rules under which a run waits for the slot of its job."""

Limits = Sequence[tuple[str, str | None]]
"""Limits of a job: their name, and the key that its runs are counted by."""


class Gate(NamedTuple):
    """A limit on the number of runs.

    Attributes:
        key: the key of its slots, its bucket and its queue.
        reason: the wait reason of runs that wait for it.
        namespace: whose limit, or cap, it is.
        name: of the limit.
        part: the key that the limit is counted by, as the job names it.
    """

    key: UUID
    reason: WaitReason
    namespace: str
    name: str | None = None
    part: str | None = None


class GateLimit(NamedTuple):
    """What a gate admits: runs at a time, and starts per second. None: no such limit."""

    max_running: int | None = None
    rate_per_second: float | None = None
    burst: float = 1.0


@dataclass(slots=True)
class GateCapacity:
    """The free capacity of a gate.

    Attributes:
        rule: of the gate.
        taken: the numbers of the slots in use.
        tokens: the tokens in its bucket now.
    """

    rule: GateLimit
    taken: set[int] = field(default_factory=set)
    tokens: float = 0.0
    _lowest: int = field(default=0, init=False, repr=False, compare=False)
    """Below this number every slot is taken, so that none is checked twice."""

    @property
    def left(self) -> int | None:
        """The number of runs that it admits now, besides runs that already hold a slot; None: unlimited."""
        rule = self.rule
        slots = None if rule.max_running is None else max(0, rule.max_running - len(self.taken))
        if rule.rate_per_second is None:
            return slots
        tokens = int(self.tokens + _ROUNDING)
        return tokens if slots is None else min(slots, tokens)

    @property
    def next_token_seconds(self) -> float | None:
        """Seconds to the next token; None if no token is missing."""
        rate = self.rule.rate_per_second
        if rate is None or self.tokens + _ROUNDING >= 1.0:
            return None
        return (1.0 - self.tokens) / rate

    def admits(self, *, holding: bool) -> bool:
        """Whether it admits one more run; a run that holds a slot needs no other."""
        rule = self.rule
        if rule.rate_per_second is not None and self.tokens + _ROUNDING < 1.0:
            return False
        return holding or rule.max_running is None or len(self.taken) < rule.max_running

    def admit(self, *, holding: bool) -> int | None:
        """Admit one run; return the number of its slot, if it takes one."""
        if self.rule.rate_per_second is not None:
            self.tokens = max(0.0, self.tokens - 1.0)
        if holding or self.rule.max_running is None:
            return None
        while self._lowest in self.taken:
            self._lowest += 1
        self.taken.add(self._lowest)
        return self._lowest


class Candidate(NamedTuple):
    """A waiting run, with the gates that it must pass, in order, and the keys of the slots that it holds."""

    run_id: UUID
    namespace: str
    lane: int
    since: datetime
    gates: Sequence[Gate]
    holds: frozenset[UUID] = frozenset()


@dataclass(slots=True)
class Decision:
    """The decision about a candidate.

    Attributes:
        candidate: the run.
        blocked_by: the gate that it waits for from now on; None: it is queued.
        overlap: it takes the overlap slot of its job, even if it has to continue waiting.
        slots: the slots of limits and caps that it takes when it is queued.
        tokens: keys of the buckets from which it takes a token.
    """

    candidate: Candidate
    blocked_by: Gate | None = None
    overlap: bool = False
    slots: list[tuple[UUID, int]] = field(default_factory=list)
    tokens: list[UUID] = field(default_factory=list)


_ROUNDING: Final = 1e-9
"""Rounding may leave a bucket slightly below its next token."""


def overlap_gate(job_id: UUID, namespace: str) -> Gate:
    """Return the gate of the overlap slot of a job whose runs must not overlap."""
    return Gate(job_id, WaitReason.OVERLAP, namespace)


def limit_gate(namespace: str, name: str, part: str | None) -> Gate:
    """Return the gate of a limit, or of one key of it."""
    return Gate(_key("limit", namespace, name, part), WaitReason.LIMIT, namespace, name, part)


def fairness_gate(namespace: str, lane: int) -> Gate:
    """Return the gate of a namespace's cap. Each lane has its own: high never waits for low."""
    return Gate(_key("in flight", namespace, Lane(lane).label, None), WaitReason.FAIRNESS, namespace)


def gates_of(
    job_id: UUID, namespace: str, lane: int, limits: Limits, overlap: str, *, capped: bool
) -> list[Gate]:
    """Return the gates that a run of a job must pass, in order."""
    # Also under `skip`: a run that was queued under another rule must not overlap the holder of the slot.
    gates = [overlap_gate(job_id, namespace)] if overlap != Overlap.ALLOW else []
    # Each once: a run takes one slot of a limit, however often its job names it.
    gates += [limit_gate(namespace, name, part) for name, part in dict.fromkeys((n, p) for n, p in limits)]
    if capped:
        gates.append(fairness_gate(namespace, lane))
    return gates


def filled(tokens: float | None, seconds: float, rule: GateLimit) -> float:
    """Return the tokens of a bucket after a number of seconds; `tokens` None: never used, so it is full."""
    if rule.rate_per_second is None or tokens is None:
        return rule.burst
    return min(rule.burst, tokens + max(0.0, seconds) * rule.rate_per_second)


def grant(candidates: Iterable[Candidate], capacities: Mapping[UUID, GateCapacity]) -> list[Decision]:
    """Decide about waiting runs, in the order in which they must be queued.

    Args:
        candidates: each once.
        capacities: of each of their gates, by key; a gate that is missing is open. Admitted runs reduce them.
    """
    return [_decide(candidate, capacities) for candidate in round_robin(candidates)]


def round_robin(candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """Order runs: the high lane first; of a lane each namespace in turn, its oldest run first.

    Deficit round robin with equal weights, where every run costs the same.
    """
    lanes: dict[int, dict[str, list[Candidate]]] = defaultdict(lambda: defaultdict(list))
    for candidate in candidates:
        lanes[candidate.lane][candidate.namespace].append(candidate)
    for lane in sorted(lanes):
        queues = deque(
            deque(sorted(queue, key=lambda c: (c.since, c.run_id))) for queue in lanes[lane].values()
        )
        while queues:
            queue = queues.popleft()
            yield queue.popleft()
            if queue:
                queues.append(queue)


def _decide(candidate: Candidate, capacities: Mapping[UUID, GateCapacity]) -> Decision:
    decision = Decision(candidate)
    gates = [
        (gate, capacities[gate.key], gate.key in candidate.holds)
        for gate in candidate.gates
        if gate.key in capacities
    ]
    for gate, capacity, holding in gates:
        if not capacity.admits(holding=holding):
            decision.blocked_by = gate
            return decision
        if gate.reason is WaitReason.OVERLAP:
            # Taken although the run may have to wait for a limit: it is the next of its job, before later
            # instants.
            decision.overlap = capacity.admit(holding=holding) is not None
    for gate, capacity, holding in gates:
        if gate.reason is WaitReason.OVERLAP:
            continue
        number = capacity.admit(holding=holding)
        if number is not None:
            decision.slots.append((gate.key, number))
        if capacity.rule.rate_per_second is not None:
            decision.tokens.append(gate.key)
    return decision


def _key(kind: str, namespace: str, name: str, part: str | None) -> UUID:
    # A key may be any text, so each part comes with its length: no two gates share a key.
    parts = (kind, namespace, name) if part is None else (kind, namespace, name, part)
    text = "".join(f"{len(one)}:{one}" for one in parts)
    return UUID(bytes=hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest())
