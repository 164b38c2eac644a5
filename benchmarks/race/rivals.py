"""The rivals: how each is installed, started and asked how far it is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, LiteralString
from urllib.parse import urlsplit

PROGRAMS: Final = Path(__file__).with_name("programs")

Command = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rival:
    """Another scheduler on Postgres, used by a program of three commands.

    `prepare` creates its tables. `load` reads due instants from stdin, Unix seconds, one per line, and
    creates one job for each. `work` runs jobs until SIGTERM. If `RACE_STAMPS` is set, the handler appends
    the due instant and that of its first line, two little-endian doubles, to the file `$RACE_STAMPS.PID`.

    Attributes:
        name: also of the folder in `programs` and of the folder in which it is installed.
        version: that is installed.
        settings: one line for the report.
        history: what is left of a run.
        tools: programs that the installation needs.
        install: commands that install it, in its folder, which holds a copy of its program.
        command: of its program, given its folder.
        workers: processes with `work`.
        warm_seconds: that its workers need before they are ready.
        finished: statement that counts outcomes, from the number of jobs (`size`).
        last_finished: statement that returns the Unix time of the last outcome; None if it keeps none.
    """

    name: str
    version: str
    settings: str
    history: str
    tools: tuple[str, ...]
    install: Callable[[Path], tuple[Command, ...]]
    command: Callable[[Path], Command]
    workers: int
    warm_seconds: float
    finished: LiteralString
    last_finished: LiteralString | None = None

    @property
    def program(self) -> Path:
        """The folder with the source of its program."""
        return PROGRAMS / self.name


def environment_of(url: str) -> Mapping[str, str]:
    """Return how programs find a database: `RACE_URL` for libpq, `RACE_JDBC` for Java."""
    parts = urlsplit(url)
    address = f"{parts.hostname}:{parts.port}{parts.path}"
    login = f"user={parts.username}&password={parts.password}"
    return {
        "RACE_URL": url,
        "RACE_JDBC": f"jdbc:postgresql://{address}?{login}&reWriteBatchedInserts=true",
    }


def _words(command: str, *more: Path | str) -> Command:
    return (*command.split(), *(str(one) for one in more))


_PGQUEUER: Final = Rival(
    name="pgqueuer",
    version="1.6.0",
    settings="2 processes, asyncpg and uvloop, batches of 500, durable tables, its autovacuum settings",
    history="a log row",
    tools=(),
    install=lambda folder: (
        (sys.executable, "-m", "venv", str(folder / "venv")),
        (str(folder / "venv/bin/pip"), "install", "--quiet", "pgqueuer[asyncpg]==1.6.0", "uvloop>=0.21,<1"),
    ),
    command=lambda folder: (str(folder / "venv/bin/python"), str(folder / "program.py")),
    workers=2,
    warm_seconds=4.0,
    finished="select count(*) from pgqueuer_log where status = 'successful'",
    last_finished=(
        "select extract(epoch from max(created))::float8 from pgqueuer_log where status = 'successful'"
    ),
)

_GRAPHILE: Final = Rival(
    name="graphile-worker",
    version="0.17.3",
    settings="2 processes of 24 jobs each, local queue of 500, no delay of completions, polls every 50 ms",
    history="deleted",
    tools=("node", "npm"),
    install=lambda folder: (
        _words("npm install --silent --no-fund --no-audit graphile-worker@0.17.3 --prefix", folder),
    ),
    command=lambda folder: ("node", str(folder / "program.mjs")),
    workers=2,
    warm_seconds=5.0,
    finished="select %(size)s - count(*) from graphile_worker._private_jobs",
)

_RIVER: Final = Rival(
    name="river",
    version="0.51.2",
    settings="1 process of 2,000 jobs, fetches every 2 ms at most, polls every 20 ms",
    history="kept for a day",
    tools=("go",),
    install=lambda folder: (
        ("go", "-C", str(folder), "mod", "tidy"),
        ("go", "-C", str(folder), "build", "-o", "program", "."),
    ),
    command=lambda folder: (str(folder / "program"),),
    workers=1,
    warm_seconds=8.0,
    finished="select count(*) from river_job where state = 'completed'",
)

_DB_SCHEDULER: Final = Rival(
    name="db-scheduler",
    version="16.0.0",
    settings="1 process of 50 threads, lock-and-fetch (1.0, 4.0), polls every 10 ms, heap of 512 MB",
    history="deleted",
    tools=("java", "javac", "mvn"),
    install=lambda folder: (
        _words("mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib -f", folder / "pom.xml"),
        _words("javac -cp lib/* -d classes", folder / "Program.java"),
    ),
    command=lambda folder: ("java", "-Xmx512m", "-cp", f"{folder / 'classes'}:{folder / 'lib'}/*", "Program"),
    workers=1,
    warm_seconds=6.0,
    finished="select %(size)s - count(*) from scheduled_tasks",
)

RIVALS: Final[Mapping[str, Rival]] = {
    rival.name: rival for rival in (_PGQUEUER, _GRAPHILE, _RIVER, _DB_SCHEDULER)
}
"""By name, in the order of the race."""
