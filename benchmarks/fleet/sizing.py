"""How large an installation must be for a scenario: processes, hosts, Postgres clusters, storage, cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from benchmarks.figures import percentile
from benchmarks.fleet.arrivals import DAY_SECONDS, Scenario
from benchmarks.fleet.machine import ModelError
from benchmarks.fleet.measured import SESSIONS, Measured
from benchmarks.fleet.model import KINDS, Model
from benchmarks.fleet.path import PARTITIONS, Passed, simulate
from benchmarks.fleet.queue import Minute, serve

DRAIN_SHARE: Final = 0.85
"""Of what the parts could do, that a whole path does while it works off a backlog."""

CORES: Final = "Postgres: cores"
LOG: Final = "Postgres: log of transactions"

BROKERS: Final = 3
DATABASE_COPIES: Final = 2
HOURS_PER_MONTH: Final = 730
_HOST_SIZES: Final = (2, 4, 8, 16, 32, 48, 64, 96, 128, 192)
_SAMPLE_SECONDS: Final = 4
_MOST_CLUSTERS: Final = 1000
_QUIET_RATE: Final = 1000.0
_PLENTY: Final = 1e6


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What was not measured, but chosen.

    Attributes:
        kind: of the runs.
        utilisation: of any part at a sustained load, at most.
        host_cores: of the largest host for services and brokers.
        primary_cores: of the largest host for a Postgres.
        primary_wal_mb: megabytes per second that the disk of one Postgres takes.
        retention_days: of the ledger.
        kafka_days: of the topics of runs and events.
    """

    kind: str = "recurring"
    utilisation: float = 0.6
    host_cores: int = 16
    primary_cores: int = 32
    primary_wal_mb: float = 150.0
    retention_days: float = 30.0
    kafka_days: float = 7.0
    price_core_hour: float = 0.04
    price_gb_month: float = 0.10

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ModelError(f"no kind of run is called {self.kind}; known: {', '.join(KINDS)}")
        if not 0 < self.utilisation <= 1:
            raise ModelError(
                f"a utilisation of {self.utilisation:g} is not possible; use one up to 1, such as 0.6"
            )
        if min(self.host_cores, self.primary_cores) < _HOST_SIZES[0] or not self.primary_wal_mb > 0:
            raise ModelError("a host needs two cores at least, and a disk that takes something")
        if min(self.retention_days, self.kafka_days, self.price_core_hour, self.price_gb_month) < 0:
            raise ModelError("days and prices cannot be negative")


@dataclass(frozen=True, slots=True)
class Hosts:
    """Hosts of one role, in all clusters together."""

    role: str
    processes: int
    hosts: int
    cores: int

    @property
    def all_cores(self) -> int:
        """Of all of these hosts."""
        return self.hosts * self.cores


@dataclass(frozen=True, slots=True)
class Cluster:
    """One Postgres with its services: one installation, which has its own namespaces.

    Attributes:
        postgres_cores: of its primary.
        base: p50 and p99 lateness without a backlog, seconds.
    """

    triggers: int
    dispatchers: int
    workers: int
    postgres_cores: int
    base: tuple[float, float]

    @property
    def partitions(self) -> int:
        """Of a lane."""
        return max(PARTITIONS, self.workers)

    @property
    def shards(self) -> int:
        """Twice the triggers."""
        return max(4, 2 * self.triggers)

    @property
    def sessions(self) -> int:
        """Of Postgres, with two of intake, API and observer, and a watchdog."""
        return 9 * self.triggers + 5 * self.dispatchers + 4 * self.workers + 2 * (2 + 18 + 4) + 2


@dataclass(frozen=True, slots=True)
class Limit:
    """A resource, and the runs per second of the whole fleet at which it is used up."""

    resource: str
    rate: float


@dataclass(frozen=True, slots=True)
class Stored:
    """What is written and kept.

    Attributes:
        wal_mb_per_s: of all clusters, in the busiest time.
        kafka_mb_per_s: of all replicas, in the busiest time.
        kept_gb: ledger and topics for as long as they are kept, all copies.
    """

    wal_mb_per_s: float
    wal_gb_per_day: float
    ledger_gb_per_day: float
    kafka_mb_per_s: float
    kept_gb: float


@dataclass(frozen=True, slots=True)
class Fleet:
    """An installation, or several, for a scenario.

    Attributes:
        target: runs per second that every part must be able to do.
        capacity: runs per second at which a backlog is worked off.
        limits: what is used up first comes first.
        minutes: waits for the backlog; `Cluster.base` comes on top.
    """

    scenario: Scenario
    clusters: int
    cluster: Cluster
    hosts: list[Hosts]
    target: float
    capacity: float
    limits: list[Limit]
    minutes: list[Minute]
    stored: Stored
    cost_per_month: float


def size(model: Model, measured: Measured, scenario: Scenario, given: Assumptions) -> Fleet:
    """Find the smallest fleet whose every part has room for the scenario.

    Raises:
        ModelError: no number of clusters is enough.
    """
    target = max(scenario.sustained / given.utilisation, scenario.needed_rate / DRAIN_SHARE)
    clusters, cluster = _clusters(model, scenario, given, target)
    limits = _limits(model, cluster, clusters, given)
    # The brokers are sized by their load, and never the limit.
    capacity = DRAIN_SHARE * limits[0].rate
    wal = _wal_bytes(model, scenario, cluster, clusters, given)
    stored = _stored(measured, scenario, given, wal, max(scenario.sustained, scenario.needed_rate))
    hosts = _hosts(model, cluster, clusters, given, target)
    core_hours = sum(one.all_cores for one in hosts) * HOURS_PER_MONTH
    return Fleet(
        scenario=scenario,
        clusters=clusters,
        cluster=cluster,
        hosts=hosts,
        target=target,
        capacity=capacity,
        limits=limits,
        minutes=serve(scenario.seconds(), capacity),
        stored=stored,
        cost_per_month=core_hours * given.price_core_hour + stored.kept_gb * given.price_gb_month,
    )


def _stored(
    measured: Measured, scenario: Scenario, given: Assumptions, wal_bytes: float, busiest: float
) -> Stored:
    """Return what is written and kept, with `busiest` runs per second at most."""
    one_time = given.kind == "one-time"
    each = measured.stored_bytes if one_time else measured.recurring_stored_bytes
    # A finished one-time job is kept with its run.
    ledger = (each["ledger"] + (each["jobs"] if one_time else 0.0)) * scenario.runs_per_day / 1e9
    kafka = each["kafka"] * BROKERS
    kept = ledger * given.retention_days * DATABASE_COPIES
    kept += kafka * scenario.runs_per_day * given.kafka_days / 1e9
    return Stored(
        wal_mb_per_s=wal_bytes * busiest / 1e6,
        wal_gb_per_day=wal_bytes * scenario.runs_per_day / 1e9,
        ledger_gb_per_day=ledger,
        kafka_mb_per_s=kafka * busiest / 1e6,
        kept_gb=kept,
    )


@dataclass(frozen=True, slots=True)
class Steady:
    """What one cluster uses at a steady rate: cores that are busy, bytes, and how late runs start.

    Attributes:
        brokers: cores of one of the brokers.
        late: p50 and p99, seconds.
    """

    rate: float
    postgres: float
    workers: float
    trigger_and_dispatcher: float
    brokers: float
    wal_mb_per_s: float
    ledger_gb_per_day: float
    late: tuple[float, float]


def steady(model: Model, measured: Measured, given: Assumptions, rate: float) -> Steady:
    """Return what runs use at a rate that never changes, with one process of each service."""
    kind = given.kind
    passed = _sample(model, kind, rate, (1, 1, 1))
    busy = {part: seconds / _SAMPLE_SECONDS for part, seconds in passed.cpu.items()}
    rest = rate * model.background[kind]["rest"].of(1, 1 / rate) / 1e6
    late = sorted(passed.late)
    claims = passed.batches["claim"] / max(1, passed.done)
    stored = measured.recurring_stored_bytes if kind == "recurring" else measured.stored_bytes
    return Steady(
        rate=rate,
        postgres=sum(busy[part] for part in SESSIONS) + rest,
        workers=busy["worker"],
        trigger_and_dispatcher=busy["trigger"] + busy["dispatcher"],
        brokers=busy["kafka"],
        wal_mb_per_s=rate * model.wal[kind].of(1, claims) / 1e6,
        ledger_gb_per_day=rate * DAY_SECONDS * stored["ledger"] / 1e9,
        late=(percentile(late, 0.5), percentile(late, 0.99)),
    )


def _clusters(model: Model, scenario: Scenario, given: Assumptions, target: float) -> tuple[int, Cluster]:
    """Divide the load over as many Postgres clusters as it takes for each to fit on a host."""
    wal = model.wal[given.kind].of(1, 1 / model.limits.claim_batch)
    for clusters in range(1, _MOST_CLUSTERS + 1):
        share = target / clusters
        if share * wal / 1e6 > given.primary_wal_mb:
            continue
        if share * model.postgres_us(given.kind) / 1e6 > given.primary_cores:
            continue
        cluster, cores = _cluster(model, given, share, scenario.sustained / clusters)
        if cores <= given.primary_cores:
            return clusters, cluster
    raise ModelError(
        f"{_MOST_CLUSTERS} Postgres clusters are not enough: allow a larger host or disk for each"
    )


def _cluster(model: Model, given: Assumptions, share: float, rate: float) -> tuple[Cluster, float]:
    """Size one cluster for its share of the load; return the cores that its Postgres needs, too."""
    kind = given.kind
    one_does = model.trigger_rate(kind), model.dispatcher_rate(kind), model.worker_rate(kind)
    triggers, dispatchers, workers = (max(2, math.ceil(share / each)) for each in one_does)
    passed = _sample(model, kind, rate or _QUIET_RATE, (triggers, dispatchers, workers))
    cores = share * model.postgres_us(kind) / 1e6
    if rate:
        # Below saturation batches are smaller, and a run costs more.
        used = sum(passed.cpu[part] for part in SESSIONS) / _SAMPLE_SECONDS
        used += rate * model.background[kind]["rest"].of(1, 1 / rate) / 1e6
        cores = max(cores, used / given.utilisation)
    late = sorted(passed.late)
    base = percentile(late, 0.5), percentile(late, 0.99)
    return Cluster(triggers, dispatchers, workers, _host_size(cores, given.primary_cores), base), cores


def _sample(model: Model, kind: str, rate: float, counts: tuple[int, int, int]) -> Passed:
    """Simulate a few seconds of a steady rate, each process on cores of its own."""
    triggers, dispatchers, workers = counts
    path = model.path(kind, triggers=triggers, dispatchers=dispatchers, workers=workers)
    due = [number / rate for number in range(round(rate * _SAMPLE_SECONDS))]
    return simulate(path, due, cores=_PLENTY, until=2 * _SAMPLE_SECONDS)


def _wal_bytes(
    model: Model, scenario: Scenario, cluster: Cluster, clusters: int, given: Assumptions
) -> float:
    """Return the bytes of the log for each run, with batches of the size that the busiest time has."""
    batch = float(model.limits.claim_batch)
    if scenario.sustained:
        each = scenario.sustained / clusters / cluster.triggers
        batch = max(1.0, min(batch, each * model.limits.claim_pause))
    return model.wal[given.kind].of(1, 1 / batch)


def _limits(model: Model, cluster: Cluster, clusters: int, given: Assumptions) -> list[Limit]:
    kind = given.kind
    wal = model.wal[kind].of(1, 1 / model.limits.claim_batch)
    found = [
        Limit(CORES, cluster.postgres_cores * 1e6 / model.postgres_us(kind)),
        Limit(LOG, given.primary_wal_mb * 1e6 / wal),
        Limit("triggers", cluster.triggers * model.trigger_rate(kind)),
        Limit("dispatchers", cluster.dispatchers * model.dispatcher_rate(kind)),
        Limit("workers", cluster.workers * model.worker_rate(kind)),
    ]
    return sorted((Limit(one.resource, clusters * one.rate) for one in found), key=lambda one: one.rate)


def _hosts(model: Model, cluster: Cluster, clusters: int, given: Assumptions, target: float) -> list[Hosts]:
    kind, share = given.kind, target / clusters
    background = sum(model.background[kind][part].per_run for part in ("observer", "intake", "api"))
    light = sum(model.full_us(kind, part) for part in ("trigger", "dispatcher")) + background
    processes = cluster.triggers + cluster.dispatchers + 2 * 3 + 1
    kafka_us = BROKERS * model.full_us(kind, "kafka", model.limits.relay_batch)
    services = _spread(share * light / 1e6, given.host_cores)
    workers = _spread(share * model.full_us(kind, "worker", model.limits.most // 2) / 1e6, given.host_cores)
    brokers = _spread(target * kafka_us / 1e6, given.host_cores, least=BROKERS)
    return [
        Hosts("Postgres, primary and standby", clusters * 2, clusters * 2, cluster.postgres_cores),
        Hosts(
            "trigger, dispatcher, intake, API, observer",
            clusters * processes,
            clusters * services[0],
            services[1],
        ),
        Hosts("worker, handlers apart", clusters * cluster.workers, clusters * workers[0], workers[1]),
        Hosts("Kafka, shared by all", brokers[0], brokers[0], brokers[1]),
    ]


def _spread(cores: float, largest: int, *, least: int = 2) -> tuple[int, int]:
    """Divide cores over the fewest hosts of which all but one are enough; return hosts and their cores."""
    hosts = max(least, math.ceil(cores / largest) + 1)
    return hosts, _host_size(cores / (hosts - 1), largest)


def _host_size(cores: float, largest: int) -> int:
    """Return the smallest usual host with so many cores."""
    return min((size for size in (*_HOST_SIZES, largest) if cores <= size <= largest), default=largest)
