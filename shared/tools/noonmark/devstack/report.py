"""What a person sees while a stack starts, runs and stops; every line also goes to the supervisor's log."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from noonmark.devstack.processes.errors import DevStackError
from noonmark.devstack.state import StackState, state_file
from noonmark.settings.postgres_url import database_address


class Reporter:
    """Progress lines on a console (with a spinner on a terminal) and in a log file."""

    def __init__(self, stream: IO[str] | None, log_file: Path | None = None) -> None:
        """Takes the stream to show lines on (None: the log only) and the log file."""
        self._console = None if stream is None else Console(file=stream, highlight=False, soft_wrap=True)
        self._log_file = log_file
        self._status: Status | None = None

    @contextlib.contextmanager
    def step(self, name: str, doing: str) -> Iterator[list[str]]:
        """Shows a step while it runs, and its result.

        Yields:
            A list; its items are shown as the step's result.
        """
        began = time.monotonic()
        result: list[str] = []
        self._log(f"{name}: {doing}")
        if self._console is not None and self._console.is_terminal:
            with self._guard():
                self._status = self._console.status(Text(f"{name}: {doing}"))
                self._status.start()
        else:
            self._show(Text(f"{name}: {doing}"))
        try:
            yield result
        finally:
            self._end_status()
        self.line(f"{name}: {' '.join(result) or 'done'} ({time.monotonic() - began:.1f} s)")

    def line(self, text: str, *, style: str = "") -> None:
        """Shows and logs one line (or several)."""
        self._log(text)
        self._show(Text(text, style=style))

    def warn(self, text: str) -> None:
        """Shows and logs something that went wrong but does not stop the stack."""
        self.line(text, style="yellow")

    def fail(self, error: DevStackError) -> None:
        """Shows and logs why the stack stops."""
        self._end_status()
        self.line(str(error), style="bold red")

    def addresses(self, state: StackState) -> None:
        """Shows the addresses of a running stack, unshortened so that they can be copied."""
        rows = {"API": state.api_url, "API key": state.api_key_file}
        # Without the password: this ends up in scroll-back, in logs of builds and in bug reports.
        file = state_file(Path(state.log_dir).parent)
        database = f"{database_address(state.database_url)} (its URL with the password is in {file})"
        rows |= {"Postgres": database if state.database_url else "", "Kafka": state.kafka_bootstrap}
        rows |= state.metrics
        rows["logs"] = state.log_dir
        width = max(len(name) for name in rows)
        for name, address in rows.items():
            if address:
                self._show(Text.assemble((f"  {name:<{width}}  ", "bold"), address))

    def show(self, table: Table) -> None:
        """Shows a table, which is not logged."""
        self._show(table)

    def _show(self, what: Text | Table) -> None:
        if self._console is not None:
            with self._guard():
                self._console.print(what)

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        """A closed terminal or a broken pipe must not keep the stack from stopping."""
        try:
            yield
        except OSError:
            self._console = None

    def _end_status(self) -> None:
        if self._status is not None:
            with self._guard():
                self._status.stop()
            self._status = None

    def _log(self, text: str) -> None:
        if self._log_file is None:
            return
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        # A full disk is reported by the step that needs the space, not by the log.
        with contextlib.suppress(OSError), self._log_file.open("a", encoding="utf-8") as log:
            log.writelines(f"{now} {line}\n" for line in text.splitlines())
