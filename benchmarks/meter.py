"""What a window cost: CPU by kind of process, WAL, Kafka records; and memory at one moment."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
import psycopg
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from benchmarks.figures import SERVERS, SERVICES, total
from noonmark.kafka.config import KafkaConfig

BENCHMARK: Final = "benchmark"
_TICK_SECONDS: Final = 0.01
_ENDED: Final = "ended sessions and autovacuum"
_LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class Reading:
    """The counters at one moment. Seconds of CPU by kind; by process for Postgres; by the whole machine."""

    at: float
    cpu: dict[str, float]
    postgres: dict[int, float]
    postgres_ended: float
    machine: float
    wal: int
    checkpoint: str
    records: dict[str, int]


@dataclass(frozen=True, slots=True)
class Spent:
    """The difference of two readings."""

    seconds: float
    cpu: dict[str, float]
    backends: dict[str, float]
    other_cpu: float
    wal: int
    records: dict[str, int]
    checkpoint: bool

    def cpu_us(self, per: int) -> dict[str, float]:
        """CPU microseconds by kind for each of `per` things."""
        return {kind: round(1e6 * seconds / per, 2) for kind, seconds in self.cpu.items()}

    def backend_us(self, per: int) -> dict[str, float]:
        """CPU microseconds by kind of Postgres process, the dearest first."""
        return {name: round(1e6 * seconds / per, 2) for name, seconds in self._dearest()}

    def backend_percent(self) -> dict[str, float]:
        """CPU by kind of Postgres process in percent of one core, the dearest first."""
        return {name: round(100 * seconds / self.seconds, 2) for name, seconds in self._dearest()}

    def _dearest(self) -> list[tuple[str, float]]:
        ordered = sorted(self.backends.items(), key=lambda item: -item[1])
        return [item for item in ordered if item[1] > _TICK_SECONDS / 2]

    def percent(self) -> dict[str, float]:
        """CPU by kind in percent of one core."""
        return {kind: round(100 * seconds / self.seconds, 2) for kind, seconds in self.cpu.items()}

    def noonmark_percent(self) -> float:
        """CPU of noonmark's own processes in percent of one core."""
        return round(100 * total(self.cpu, SERVICES) / self.seconds, 2)

    def all_percent(self) -> float:
        """The same with Postgres and Kafka."""
        return round(100 * total(self.cpu, (*SERVICES, *SERVERS)) / self.seconds, 2)

    def other_percent(self) -> float:
        """CPU of everything else on the machine in percent of one core."""
        return round(100 * self.other_cpu / self.seconds, 1)


class Meter:
    """Reads all counters of one stack.

    Args:
        connection: to Postgres, in autocommit.
        bootstrap: the broker.
        pids: process ids by kind, or by kind and number, such as `worker.2`, which count together. Children
            count with their parent, also when they have ended.
        topics: whose records are counted.
    """

    def __init__(
        self, connection: psycopg.Connection, bootstrap: str, pids: Mapping[str, int], topics: Sequence[str]
    ) -> None:
        self._connection = connection
        self._pids: dict[str, list[int]] = defaultdict(list)
        for name, pid in pids.items():
            self._pids[name.partition(".")[0]].append(pid)
        self._admin = AdminClient(KafkaConfig(bootstrap).client(client_id="benchmark"))
        known = self._admin.list_topics(timeout=10).topics
        self._partitions = [
            TopicPartition(topic, number)
            for topic in topics
            if topic in known
            for number in known[topic].partitions
        ]

    def read(self) -> Reading:
        """Read everything, within some ten milliseconds."""
        row = self._connection.execute(
            "select (pg_current_wal_insert_lsn() - '0/0')::bigint, checkpoint_lsn::text"
            " from pg_control_checkpoint()"
        ).fetchone()
        assert row is not None
        records = self._records()
        children = _children()
        at = time.monotonic()
        cpu = {kind: sum(_tree_seconds(pid, children) for pid in pids) for kind, pids in self._pids.items()}
        own = psutil.Process().cpu_times()
        cpu[BENCHMARK] = own.user + own.system
        (postmaster,) = self._pids["postgres"]
        backends = {pid: _tree_seconds(pid, children) for pid in children.get(postmaster, ())}
        ended = cpu["postgres"] - sum(backends.values())
        return Reading(at, cpu, backends, ended, _machine_seconds(), row[0], row[1], records)

    def spent(self, before: Reading) -> Spent:
        """Tell what was spent since a reading."""
        names = self._backend_names()
        after = self.read()
        backends: dict[str, float] = defaultdict(float)
        for pid, seconds in after.postgres.items():
            backends[names.get(pid, "other")] += seconds - before.postgres.get(pid, 0.0)
        gone = sum(seconds for pid, seconds in before.postgres.items() if pid not in after.postgres)
        backends[_ENDED] += after.postgres_ended - before.postgres_ended - gone
        cpu = {kind: seconds - before.cpu.get(kind, 0.0) for kind, seconds in after.cpu.items()}
        return Spent(
            seconds=after.at - before.at,
            cpu=cpu,
            backends=dict(backends),
            other_cpu=max(0.0, after.machine - before.machine - sum(cpu.values())),
            wal=after.wal - before.wal,
            records={
                topic: count - before.records.get(topic, 0)
                for topic, count in after.records.items()
                if count != before.records.get(topic, 0)
            },
            checkpoint=after.checkpoint != before.checkpoint,
        )

    def memory_mb(self) -> dict[str, float]:
        """Resident memory by kind. Postgres shares most of its pages; there each counts only once (PSS)."""
        children = _children()
        found = {}
        for kind, pids in self._pids.items():
            measure = _shared_out_bytes if kind == "postgres" else _resident_bytes
            found[kind] = round(sum(measure(one) for pid in pids for one in _tree(pid, children)) / 1e6, 1)
        return found

    def _records(self) -> dict[str, int]:
        """Records ever written, by topic."""
        if not self._partitions:
            return {}
        futures = self._admin.list_offsets(dict.fromkeys(self._partitions, _LATEST), request_timeout=10)
        counts: dict[str, int] = defaultdict(int)
        for partition, future in futures.items():
            counts[partition.topic] += future.result().offset
        return dict(counts)

    def _backend_names(self) -> dict[int, str]:
        rows = self._connection.execute(
            "select pid, case backend_type when 'client backend' then application_name else backend_type end"
            " from pg_stat_activity"
        ).fetchall()
        return {pid: name or "client backend" for pid, name in rows}


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for process in psutil.process_iter(["ppid"]):
        found[process.info["ppid"]].append(process.pid)
    return found


def _tree(pid: int, children: Mapping[int, Sequence[int]]) -> list[int]:
    return [pid, *(below for child in children.get(pid, ()) for below in _tree(child, children))]


def _tree_seconds(pid: int, children: Mapping[int, Sequence[int]]) -> float:
    """CPU seconds of a process and all its descendants; those that ended are kept by their parent."""
    spent = 0.0
    for one in _tree(pid, children):
        try:
            times = psutil.Process(one).cpu_times()
        except psutil.NoSuchProcess:
            continue
        spent += times.user + times.system + times.children_user + times.children_system
    return spent


def _machine_seconds() -> float:
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq)


def _resident_bytes(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def _shared_out_bytes(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return 1024 * int(line.split()[1])
    except OSError:
        return _resident_bytes(pid)
    return 0
