"""Two real Postgres clusters, one streaming to the other, each behind a proxy; and ways to change their roles."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from tests.support.clocks.turned import TurnedClock
from tests.support.proxy import Network, Proxy

from noonmark.devstack.postgres.accounts import server_account
from noonmark.devstack.postgres.installation import reachable_binaries
from noonmark.devstack.postgres.server import PostgresServer, find_binaries, start_postgres
from noonmark.devstack.processes import processes
from noonmark.devstack.processes.patience import Patience, quiet

SETTINGS = {"wal_keep_size": "512MB", "shared_buffers": "128MB", "wal_receiver_status_interval": "1s"}


class Replicas:
    """A primary that waits for its standby at every commit, so that a failover loses nothing.

    `url` names both through their proxies, as a client does that must find the primary by itself; `direct`
    goes around the proxies.
    """

    def __init__(self, folder: Path, network: Network, clock: TurnedClock | None = None) -> None:
        """Start both.

        Args:
            folder: of their data.
            network: of their proxies.
            clock: that both have.
        """
        self._folder = folder
        self._clock = clock
        self._data = [folder / "pg-a", folder / "pg-b"]
        first = self._start(0)
        self.servers: list[PostgresServer | None] = [first, None]
        self.primary = 0
        self._ports = [first.port, 0]
        self.failovers = 0
        self.can_fail_over = False
        """Whether the other server follows the primary: not between a failover and its repair."""
        self._attach()
        self.proxies: list[Proxy] = [network.proxy(port) for port in self._ports]
        self.url = self._url([proxy.port for proxy in self.proxies])
        self.direct = self._url(self._ports)

    def _start(self, which: int, port: int | None = None) -> PostgresServer:
        with contextlib.nullcontext() if self._clock is None else self._clock.inherited():
            return start_postgres(self._data[which], port=port, settings=SETTINGS)

    def _url(self, ports: list[int]) -> str:
        found = urlsplit(self.server.url)
        user = found.netloc.rpartition("@")[0]
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        query = "target_session_attrs=read-write&connect_timeout=3"
        return urlunsplit(found._replace(netloc=f"{user}@{hosts}", query=query))

    @property
    def server(self) -> PostgresServer:
        """The primary."""
        found = self.servers[self.primary]
        assert found is not None
        return found

    def run(self, *statements: str, which: int | None = None) -> None:
        """Execute statements on one of them, the primary by default."""
        server = self.servers[self.primary if which is None else which]
        assert server is not None
        with psycopg.connect(server.url, autocommit=True, connect_timeout=5) as connection:
            for statement in statements:
                connection.execute(statement)

    # -- faults ----------------------------------------------------------------------------------------

    def kill_backend(self, choice: float) -> None:
        """SIGKILL one backend: the server ends all sessions and recovers."""
        with contextlib.suppress(psycopg.Error), psycopg.connect(self.server.url, connect_timeout=2) as look:
            pids = [
                row[0]
                for row in look.execute(
                    "select pid from pg_stat_activity where application_name like 'noonmark-%' order by pid"
                )
            ]
            if pids:
                os.kill(pids[int(choice * len(pids))], signal.SIGKILL)

    def crash(self) -> None:
        """End the primary without a checkpoint."""
        if not self.server.is_running():
            return
        os.kill(self.server.pid, signal.SIGQUIT)
        self.server.process.wait(20)

    def restart(self) -> None:
        """Start the primary again on its folder and port, unless another has taken its place since."""
        found = self.servers[self.primary]
        if found is not None and found.is_running():
            return
        self.servers[self.primary] = self._start(self.primary, self._ports[self.primary])

    def fail_over(self, *, crash: bool) -> None:
        """Promote the standby. The old primary is dead, or stays up and read-only."""
        assert self.can_fail_over
        self.can_fail_over = False
        old, new = self.primary, 1 - self.primary
        if crash or not self.server.is_running():
            crash = True
            self.server.kill()
        else:
            self.run("alter system set default_transaction_read_only = on", "select pg_reload_conf()")
            with psycopg.connect(self.server.url, autocommit=True) as connection:
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity"
                    " where backend_type = 'client backend' and pid <> pg_backend_pid()"
                )
                end = connection.execute("select pg_current_wal_flush_lsn()").fetchone()
            assert end is not None
            self._await_replay(new, end[0])
        self.run("select pg_promote()", which=new)
        self.primary = new
        self.failovers += 1
        if crash:
            self.servers[old] = None

    def _await_replay(self, which: int, end: str) -> None:
        server = self.servers[which]
        assert server is not None
        with psycopg.connect(server.url, autocommit=True) as connection:

            def replayed() -> bool:
                row = connection.execute("select pg_last_wal_replay_lsn() >= %s::pg_lsn", [end]).fetchone()
                return bool(row and row[0])

            assert processes.wait_until(replayed, timeout_seconds=10), "the standby did not catch up"

    # -- repair ----------------------------------------------------------------------------------------

    def repair(self) -> None:
        """Have a primary with a standby again; the old primary is made anew from the new one."""
        self.restart()
        other = self.servers[1 - self.primary]
        if other is None or not self._follows():
            if other is not None:
                other.stop()
            self._attach()

    def _follows(self) -> bool:
        with _when_it_accepts(self.server.url) as connection:

            def streaming() -> bool:
                return bool(connection.execute("select 1 from pg_stat_replication").fetchone())

            seconds = 5.0 if self.servers[1 - self.primary] is not None else 0.0
            other = self.servers[1 - self.primary]
            if other is None or not other.is_running():
                return False
            with _when_it_accepts(other.url) as look:
                recovering = look.execute("select pg_is_in_recovery()").fetchone()
            return recovering == (True,) and processes.wait_until(streaming, timeout_seconds=seconds)

    def _attach(self) -> None:
        """Make the other one a standby of the primary, from a base backup."""
        other = 1 - self.primary
        folder = self._data[other]
        source = urlsplit(self.server.url)
        self.run("alter system reset synchronous_standby_names", "select pg_reload_conf()")
        shutil.rmtree(folder / "pgdata", ignore_errors=True)
        folder.mkdir(exist_ok=True)
        shutil.copy(self._data[self.primary] / "password", folder / "password")
        binaries = find_binaries()
        account = server_account()
        if account is not None:
            binaries = reachable_binaries(binaries, quiet)
            os.chown(folder, account.uid, account.gid)
            os.chown(folder / "password", account.uid, account.gid)
        code = processes.run(
            [
                *(binaries / "pg_basebackup", "-D", folder / "pgdata", "-h", "127.0.0.1"),
                *("-p", str(source.port), "-U", source.username or "", "-X", "stream", "-R", "-c", "fast"),
            ],
            log_file=folder / "basebackup.log",
            name="pg_basebackup",
            patience=Patience(),
            env={**os.environ, "PGPASSWORD": source.password or ""},
            account=account,
        )
        assert code == 0, processes.tail(folder / "basebackup.log")
        # The copy of a demoted primary would be read-only for ever.
        auto = folder / "pgdata" / "postgresql.auto.conf"
        lines = auto.read_text().splitlines(keepends=True)
        auto.write_text("".join(line for line in lines if "default_transaction_read_only" not in line))
        started = self._start(other, self._ports[other] or None)
        self.servers[other] = started
        self._ports[other] = started.port
        self.run("alter system set synchronous_standby_names = '*'", "select pg_reload_conf()")
        self.can_fail_over = True

    def close(self) -> None:
        """Stop both."""
        for server in self.servers:
            if server is not None:
                server.kill()


def _when_it_accepts(url: str) -> psycopg.Connection:
    """Connect to a server that may be recovering from what was done to it."""
    made: list[psycopg.Connection] = []

    def accepted() -> bool:
        with contextlib.suppress(psycopg.OperationalError):
            made.append(psycopg.connect(url, autocommit=True, connect_timeout=5))
        return bool(made)

    assert processes.wait_until(accepted, timeout_seconds=30), f"{url.rpartition('@')[2]} takes no connection"
    return made[0]
