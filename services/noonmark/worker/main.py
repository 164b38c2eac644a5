"""`noonmark worker`: creates the parts and runs them."""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from noonmark.attempts.context import Services
from noonmark.attempts.emitter import Emitter
from noonmark.attempts.live_logs import LogWriter
from noonmark.attempts.notes import NoteWriter
from noonmark.attempts.printed_output import store_printed
from noonmark.attempts.secrets import SecretResolver
from noonmark.core.states import Lane
from noonmark.handlers import HandlerLoadError, Registry, load_handlers
from noonmark.kafka.topics import Topics
from noonmark.service.runner import Loop, Service, StartError, run_service
from noonmark.service.startup import await_install
from noonmark.settings import Settings
from noonmark.store.cluster.catalogues import catalogue_text
from noonmark.store.database.hints import HintSender
from noonmark.store.outcomes.events import EventTopics
from noonmark.telemetry.logs import mask_also
from noonmark.telemetry.routed_output import route_output
from noonmark.worker.engine.engine import Engine
from noonmark.worker.engine.recorder import RecorderLoop, SettledRuns
from noonmark.worker.engine.slot_planner import SlotPlanner
from noonmark.worker.grpc.channels import GrpcChannels
from noonmark.worker.grpc.kind import GrpcKind
from noonmark.worker.handlers.executors import Executors, Kind
from noonmark.worker.handlers.transactions import Transactions
from noonmark.worker.http.callback_tokens import CallbackTokens
from noonmark.worker.http.client import HttpExecutor
from noonmark.worker.http.kind import HttpKind
from noonmark.worker.http.signing import SigningKeys
from noonmark.worker.in_flight import RunsInFlight
from noonmark.worker.kinds.kafka import KafkaKind
from noonmark.worker.kinds.lookups import PostgresLookups
from noonmark.worker.kinds.script import ScriptKind
from noonmark.worker.lanes.reader import Keyring, LaneReader
from noonmark.worker.lanes.rejected_messages import RefusedMessages
from noonmark.worker.leases.lease import Lease
from noonmark.worker.leases.shared_attempts import SharedAttempts
from noonmark.worker.processes.executor import Processes
from noonmark.worker.processes.spawning import ChildLauncher
from noonmark.worker.processes.suspects import memory_bytes, suspects_that_fit

_BUFFER_PER_SLOT = 8
_WATCHED_ATTEMPTS = 4096


def build(service: Service, path: Path | None = None) -> Sequence[Loop]:
    """Create the worker's parts, each one after those that it needs."""
    settings = service.settings
    registry = _handlers(settings, path)
    install = await_install(service)
    topics = Topics(settings.topic_prefix)
    events = EventTopics(lifecycle=topics.lifecycle, dead=topics.dead)
    lease, watched = _lease(service, events, shards=install.shards)
    hints, wake = HintSender(settings.dsn), threading.Event()
    keyring, refused = Keyring(service, settings.pool), RefusedMessages(service)
    readers = _readers(service, keyring, refused, wake)
    slots, in_flight = SlotPlanner(settings), RunsInFlight()
    recorder = RecorderLoop(
        service,
        events,
        hints,
        in_flight.batches,
        shards=install.shards,
        identity=lambda: lease.identity,
        settled=SettledRuns(service, readers, in_flight, wake.set),
    )
    parts = _services(service, lease)
    logs = LogWriter(service, lambda: lease.identity, in_flight.all)
    executors = _executors(
        settings, registry, parts, recorder, lease, in_flight=in_flight, watched=watched, path=path
    )
    engine = Engine(
        service,
        lease,
        executors,
        recorder,
        readers=readers,
        slots=slots,
        in_flight=in_flight,
        logs=logs,
        topics=events,
        hints=hints,
        wake=wake,
        catalogue=catalogue_text(executors.kind_names, {entry.name: entry.run for entry in registry}),
        shards=install.shards,
    )
    return [*readers, keyring, refused, recorder, parts.notes, logs, engine]


def _lease(service: Service, events: EventTopics, *, shards: int) -> tuple[Lease, SharedAttempts]:
    """Create the lease and what its heartbeat process, which starts now, sees of the attempts."""
    watched = SharedAttempts(_WATCHED_ATTEMPTS, grace_seconds=service.settings.kill_grace_seconds)
    watched.start_pulse()
    lease = Lease(service, service.settings.pool, watched, events, shards=shards, signals_fd=_signals())
    lease.start_heartbeat()
    return lease, watched


def _readers(
    service: Service, keyring: Keyring, refused: RefusedMessages, wake: threading.Event
) -> Sequence[LaneReader]:
    """Create one reader per lane."""
    pool, buffer = service.settings.pool, max(1000, service.settings.worker_slots * _BUFFER_PER_SLOT)
    return [LaneReader(service, pool, lane, keyring, refused, buffer=buffer, wake=wake.set) for lane in Lane]


def _services(service: Service, lease: Lease) -> Services:
    """Create what the contexts of handlers use."""
    settings = service.settings
    secrets = SecretResolver(Path(settings.secrets_dir) if settings.secrets_dir else None)
    mask_also(secrets.mask)
    notes = NoteWriter(service, identity=lambda: lease.identity)
    return Services(secrets, notes, Emitter(settings.emit_topics, settings.topic_prefix))


def _executors(
    settings: Settings,
    registry: Registry,
    parts: Services,
    recorder: RecorderLoop,
    lease: Lease,
    *,
    in_flight: RunsInFlight,
    watched: SharedAttempts,
    path: Path | None,
) -> Executors:
    """Create the executors of all kinds of jobs; `path` is the folder of handler modules."""
    _allow_many_files()
    launcher = ChildLauncher()
    processes = Processes(
        launcher,
        settings.handlers,
        path,
        limit=settings.worker_processes or os.cpu_count() or 1,
        suspects=settings.worker_suspect_processes
        or suspects_that_fit(settings.worker_slots, memory_bytes()),
        grace_seconds=settings.kill_grace_seconds,
    )
    return Executors(
        registry,
        _kinds(settings, launcher, parts, lease),
        processes,
        recorder.put,
        parts,
        threads=settings.worker_slots,
        in_flight=in_flight,
        is_lease_live=lease.is_live,
        watched=watched,
        transactions=Transactions(settings.dsn, recorder, lambda: lease.identity),
    )


def _kinds(settings: Settings, launcher: ChildLauncher, parts: Services, lease: Lease) -> Mapping[str, Kind]:
    """Create all kinds except Python, by their name in job documents (`type`)."""
    secrets, networks = parts.secrets, settings.http_allow_networks
    lookups = PostgresLookups(settings.dsn)
    tokens = CallbackTokens(lookups, lambda: lease.identity)
    return {
        "script": ScriptKind(
            launcher, secrets, allowed=settings.scripts, grace_seconds=settings.kill_grace_seconds
        ),
        "http": HttpKind(HttpExecutor(networks), secrets, lookups, tokens),
        "grpc": GrpcKind(GrpcChannels(networks), secrets, SigningKeys(lookups).of),
        "kafka": KafkaKind(parts.emitter),
    }


def run(settings: Settings, path: Path | None = None) -> int:
    """Run the service and return its exit code.

    Args:
        settings: as the command line read them.
        path: folder to import handler modules from.
    """
    route_output(store_printed)
    return run_service("worker", settings, lambda service: build(service, path))


def _allow_many_files() -> None:
    """Raise the soft limit of open files to the hard limit: each HTTP call in flight uses a connection."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _signals() -> int:
    """Return a pipe that gets the number of each signal at once, also while a handler keeps the GIL."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    return read_end


def _handlers(settings: Settings, path: Path | None) -> Registry:
    try:
        return load_handlers(settings.handlers, path)
    except HandlerLoadError as error:
        raise StartError(str(error)) from error
