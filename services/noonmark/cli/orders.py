"""What orders about many runs share: a database to write to, a question first, progress meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from noonmark.cli.context import changing
from noonmark.cli.output import is_terminal
from noonmark.cli.problems import CliError, ExitCode

if TYPE_CHECKING:
    import psycopg

    from noonmark.settings import Settings
    from noonmark.store.events import EventTopics

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what is meant, and change nothing.")]


@dataclass(frozen=True, slots=True)
class Writer:
    """A connection on autocommit, and what announcing verdicts needs."""

    connection: psycopg.Connection
    topics: EventTopics
    shards: int


@contextmanager
def writing(settings: Settings) -> Iterator[Writer]:
    """Open a connection that orders are carried out on.

    Raises:
        CliError: the database does not answer, or has no schema.
    """
    from noonmark.kafka.topics import Topics  # noqa: PLC0415
    from noonmark.store.events import EventTopics  # noqa: PLC0415

    topics = Topics(settings.topic_prefix)
    with changing(settings) as connection:
        row = connection.execute("select shards from install").fetchone()
        assert row is not None
        yield Writer(connection, EventTopics(lifecycle=topics.lifecycle, dead=topics.dead), int(row[0]))


def may_ask(*, yes: bool, as_json: bool) -> None:
    """Make sure that whoever orders something large has agreed, or can be asked.

    Raises:
        CliError: neither.
    """
    if not yes and (as_json or not (is_terminal() and sys.stdin.isatty())):
        raise CliError(
            "nobody can be asked here: look at what is meant with --dry-run, then give --yes", ExitCode.USAGE
        )


def agree(question: str, *, yes: bool) -> None:
    """Ask whether it shall be done, unless --yes was given; no ends the command."""
    if not yes:
        typer.confirm(question, abort=True)


def progress(done: int, total: int) -> None:
    """Show on a terminal how far an order is; larger ones take several steps."""
    if sys.stderr.isatty() and total:
        print(f"\r{done} of {total}", end="" if done < total else "\n", file=sys.stderr, flush=True)
