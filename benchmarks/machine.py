"""What the figures were measured on, and with which settings of durability."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import confluent_kafka
import psutil
import psycopg

from benchmarks.stack import BenchmarkError
from noonmark.devstack.kafka.jars import kafka_version

_SHOWN: Final = (
    "server_version",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_compression",
    "shared_buffers",
    "max_wal_size",
    "autovacuum_naptime",
)
_MUST_BE_ON: Final = ("fsync", "synchronous_commit", "full_page_writes")
_NOT_DURABLE: Final = frozenset({"tmpfs", "ramfs"})


def describe_machine(connection: psycopg.Connection, folder: Path) -> dict[str, Any]:
    """Return processor, memory, file system, versions, and the settings that durability rests on.

    Raises:
        BenchmarkError: the data would not survive a power cut, so its figures would mislead.
    """
    rows = connection.execute(
        "select name, current_setting(name) from pg_settings where name = any(%s)", [list(_SHOWN)]
    ).fetchall()
    settings: dict[str, str] = dict(rows)
    if off := [name for name in _MUST_BE_ON if settings[name] != "on"]:
        raise BenchmarkError(f"{', '.join(off)} of Postgres must be on for figures that mean something")
    file_system = _file_system(folder)
    if file_system in _NOT_DURABLE:
        raise BenchmarkError(
            f"{folder} lies in memory ({file_system}), where nothing is durable; name another with --dir"
        )
    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "file_system": file_system,
        "kernel": platform.release(),
        "load_average": [round(one, 2) for one in os.getloadavg()],
        "python": platform.python_version(),
        "noonmark": version("noonmark"),
        "psycopg": f"{version('psycopg')} ({psycopg.pq.__impl__})",
        "confluent_kafka": f"{version('confluent-kafka')} (librdkafka {confluent_kafka.libversion()[0]})",
        "postgres": settings.pop("server_version"),
        "postgres_settings": settings,
        "kafka": kafka_version(),
    }


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        return platform.processor() or "unknown"
    return platform.machine()


def _file_system(folder: Path) -> str:
    place = folder.resolve()
    found = ("", "unknown")
    for partition in psutil.disk_partitions(all=True):
        if place.is_relative_to(partition.mountpoint) and len(partition.mountpoint) > len(found[0]):
            found = (partition.mountpoint, partition.fstype)
    return found[1]
