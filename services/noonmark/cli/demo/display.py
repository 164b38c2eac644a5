"""Output of the demo: the live table, and the final tables."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from noonmark.cli.demo.ledger import Account
from noonmark.cli.demo.repair import TaskAccount
from noonmark.cli.terminal.output import STATE_COLORS, duration, printable, shortened

_PIPE_WIDTH = 120
_NOTE_WIDTH = 37


class Display:
    """Shows the submissions live on a terminal; on a pipe, one line for each change."""

    def __init__(self) -> None:
        """Write to stdout."""
        self.console = Console(highlight=False)
        if not self.console.is_terminal:
            # Not a terminal: wide enough for the tables, whatever COLUMNS says.
            self.console = Console(highlight=False, width=_PIPE_WIDTH)
        self._live: Live | None = None
        self._said: dict[str, str] = {}
        self._began = time.monotonic()

    def line(self, text: str, *, style: str = "") -> None:
        """Print one line."""
        self.console.print(Text(text, style=style), soft_wrap=True)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Update the table of submissions inside the context."""
        if not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, refresh_per_second=4, transient=True) as live:
            self._live = live
            yield
        self._live = None

    def update(self, accounts: Sequence[Account], left_seconds: float) -> None:
        """Show the current state of the submissions."""
        if self._live is not None:
            self._live.update(_progress_table(accounts, left_seconds))
            return
        for account in accounts:
            title, text = account.sent.submission.title, _where(account)
            if self._said.get(title) != text:
                self._said[title] = text
                self.step(title, text)

    def step(self, title: str, text: str) -> None:
        """Print a line of the timeline: what happened to a submission."""
        self.line(f"{time.monotonic() - self._began:6.1f} s  {title}: {text}")

    def _show_tasks(self, title: str, tasks: Sequence[TaskAccount]) -> None:
        self.line("")
        self.line(f"Tasks of {title}, the first time and after its redrive:")
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2), header_style="bold")
        for head in ("TASK", "FIRST TIME", "REDRIVEN"):
            table.add_column(head, no_wrap=True)
        for task in tasks:
            after = _colored(task.after) if task.ran_again else Text("kept", style="dim")
            table.add_row(task.key, _colored(task.before), after)
        self.console.print(table)

    def close(
        self,
        accounts: Sequence[Account],
        lags: Sequence[Mapping[str, Any]],
        tasks: Mapping[str, Sequence[TaskAccount]],
    ) -> None:
        """Print the final tables: submissions, runs, rejections, tasks of workflows, and lag in Kafka."""
        self.line("")
        self.console.print(_closing_table(accounts))
        self.line("")
        for account in accounts:
            if account.verdict == "rejected":
                self.line(f"{account.sent.submission.title} was rejected:")
                for problem in account.problems:
                    self.line(f"  {problem}")
        for title, found in tasks.items():
            self._show_tasks(title, found)
        self.line("")
        self.line(_lag_line(lags))


def _where(account: Account) -> str:
    if not account.verdict:
        return "sent"
    states = Counter(run.state for run in account.runs)
    text = ", ".join(f"{count} {state}" if count > 1 else state for state, count in states.items())
    wanted = account.sent.submission.runs
    if account.verdict == "accepted" and len(account.runs) < wanted:
        text = ", ".join(filter(None, (text, f"{wanted - len(account.runs)} not due yet")))
    return f"{account.verdict}{': ' if text else ''}{text}"


def _progress_table(accounts: Sequence[Account], left_seconds: float) -> Table:
    settled = sum(account.is_settled for account in accounts)
    table = Table(
        box=None,
        show_header=False,
        title=f"{settled} of {len(accounts)} settled, timeout in {left_seconds:.0f} s",
        title_justify="left",
    )
    for account in accounts:
        mark = Text("✓", style="green") if account.is_settled else Text("…", style="dim")
        table.add_row(mark, account.sent.submission.title, _where(account))
    return table


def _closing_table(accounts: Sequence[Account]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in ("SUBMISSION", "VERDICT", "LANE", "RUN"):
        table.add_column(head, no_wrap=True)
    for head in ("ATTEMPTS", "START DELAY"):
        table.add_column(head, no_wrap=True, justify="right")
    table.add_column("AS EXPECTED", no_wrap=True)
    table.add_column("LAST ERROR OR REASON")
    for account in accounts:
        good = Text("no", style="bold red") if account.faults else Text("yes", style="green")
        title, verdict = account.sent.submission.title, _colored(account.verdict or "none")
        if not account.runs:
            note = "see below" if account.problems else ""
            table.add_row(title, verdict, "", "", "", "", good, note)
        for number, run in enumerate(account.runs):
            cells = (
                run.lane,
                _colored(run.state),
                str(run.attempts),
                duration(run.delay_seconds),
                "" if number else good,
                shortened(run.note, _NOTE_WIDTH) if run.note else "",
            )
            table.add_row(*(("", "") if number else (title, verdict)), *cells)
    return table


def _colored(state: str) -> Text:
    return Text(printable(state), style=STATE_COLORS.get(state.partition(" ")[0], ""))


def _lag_line(lags: Sequence[Mapping[str, Any]]) -> str:
    backlog = sum(row["start_backlog"] for row in lags)
    uncommitted = sum(row["commit_lag"] for row in lags)
    groups = len({row["group"] for row in lags})
    return f"Lag of {groups} consumer groups: {backlog} messages not started, {uncommitted} not committed."
