"""The broker's jars: copied once by Maven into a cache that all stacks and test runs share."""

from __future__ import annotations

import fcntl
import os
import shutil
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from noonmark.devstack.kafka.java import Java, find_maven
from noonmark.devstack.processes import processes
from noonmark.devstack.processes.errors import DevStackError, disk_full
from noonmark.devstack.processes.patience import Patience, Say

POM: Final = Path(__file__).with_name("pom.xml")
LIBS_VARIABLE: Final = "NOONMARK_KAFKA_LIBS"
CACHE_VARIABLE: Final = "NOONMARK_CACHE_DIR"
_COMPLETE = ".complete"
_MAVEN_SECONDS = 900.0


def kafka_version() -> str:
    """The version of Kafka that the checked-in pom.xml asks for."""
    tree = ET.parse(POM)  # noqa: S314 - our own file
    version = tree.findtext(".//{*}kafka.version")
    if not version:
        raise DevStackError(f"{POM} has no kafka.version.")
    return version


def cache_dir() -> Path:
    """$NOONMARK_CACHE_DIR, else `noonmark` in the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "noonmark"


def kafka_jars(java: Java, say: Say) -> Path:
    """The folder with Kafka's jars; Maven fills it if it does not exist yet.

    Concurrent starts wait for the one that fills it.

    Args:
        java: The runtime that Maven uses.
        say: Receives one line when the jars are about to be fetched.

    Raises:
        DevStackError: The jars could not be fetched; the message says why.
    """
    chosen = os.environ.get(LIBS_VARIABLE)
    if chosen:
        folder = Path(chosen)
        if not any(folder.glob("kafka_2.13-*.jar")):
            raise DevStackError(
                f"{LIBS_VARIABLE} is {chosen}, but there is no kafka_2.13-*.jar in that folder.",
                remedy="Set it to the `libs` folder of a Kafka distribution, or unset it.",
            )
        return folder
    target = cache_dir() / f"kafka-{kafka_version()}"
    if (target / _COMPLETE).exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with locked(target.with_suffix(target.suffix + ".lock")):
        if not (target / _COMPLETE).exists():
            _copy(target, java, say)
    return target


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock that the operating system releases when the holder dies."""
    with path.open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _copy(target: Path, java: Java, say: Say) -> None:
    maven = find_maven(say)
    say(f"fetching Kafka {kafka_version()} with Maven into {target} (once, about 45 MB)")
    fresh = target.with_name(target.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(target, ignore_errors=True)
    log_file = target.with_name(target.name + ".maven.log")
    log_file.unlink(missing_ok=True)
    command = [
        *(str(maven), "-q", "-B", "-f", str(POM), "dependency:copy-dependencies"),
        *("-DincludeScope=runtime", f"-DoutputDirectory={fresh}"),
    ]
    environment = {**os.environ, "JAVA_HOME": str(java.home)}
    try:
        # Maven neither computes nor logs while it waits for a slow network.
        patience = Patience(_MAVEN_SECONDS, stalled_seconds=_MAVEN_SECONDS, say=say)
        code = processes.run(command, log_file=log_file, name="Maven", patience=patience, env=environment)
    except DevStackError:
        code = -1
    if code != 0 or not any(fresh.glob("kafka_2.13-*.jar")):
        detail = processes.tail(log_file)
        if "No space left on device" in detail:
            raise disk_full(f"while fetching Kafka's jars into {target}")
        raise DevStackError(
            f"Maven could not fetch Kafka's jars (its log is {log_file}).",
            remedy="Check that this machine reaches the Maven repository in its settings "
            f"(~/.m2/settings.xml), or set {LIBS_VARIABLE} to a folder with the jars.",
            detail=detail,
        )
    (fresh / _COMPLETE).touch()
    fresh.rename(target)
