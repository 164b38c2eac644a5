"""Ids as commands take them: in full, or their first characters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Final, Literal
from uuid import UUID

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.terminal.options import as_uuid
from noonmark.cli.terminal.output import printable
from noonmark.cli.terminal.problems import CliError, ExitCode

if TYPE_CHECKING:
    from noonmark.client import Client

LEAST: Final = 8
"""The fewest characters of an id that commands take."""

RunId = Annotated[
    str, typer.Argument(metavar="ID", help="Id of the run, or at least its first 8 characters.")
]

_WHOLE: Final = "00000000-0000-0000-0000-000000000000"
_DIGITS: Final = re.compile(r"[0-9a-f-]+", re.IGNORECASE)


def is_prefix(given: str) -> bool:
    """Return whether a text can be the beginning of an id."""
    if not LEAST <= len(given) < len(_WHOLE) or _DIGITS.fullmatch(given) is None:
        return False
    return all((one == "-") == (place == "-") for one, place in zip(given, _WHOLE, strict=False))


def is_short_prefix(given: str) -> bool:
    """Return whether a text looks like the beginning of an id, with fewer characters than commands take."""
    has_digit = any(one.isdigit() for one in given)
    return 4 <= len(given) < LEAST and has_digit and _DIGITS.fullmatch(given) is not None


def run_ids(given: Iterable[str], *, by_job: str = "", state: str | None = None) -> tuple[UUID, ...]:
    """Return the ids of runs, each once, that are given by their ids or by the first characters of them.

    Args:
        given: ids, or the beginnings of ids.
        by_job: the command that does the same for all runs of a job, up to its `--job`; empty for none.
        state: the state of runs that are meant: a beginning names one of them if it can.

    Raises:
        CliError: one is no id, no run has such an id, or several have.
    """
    wanted = tuple(dict.fromkeys(given))
    for one in wanted:
        if as_uuid(one) is None and not is_prefix(one):
            name = quote(printable(one))
            hint = f"`{by_job} --job {name}` selects the runs of a job; " if by_job else ""
            raise _no_id("run", one, f"{hint}`noonmark run list --job {name}` lists the runs of a job")
    if all(map(as_uuid, wanted)):
        return tuple(map(UUID, wanted))
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        return tuple(dict.fromkeys(as_uuid(one) or _run_of(api, one, state) for one in wanted))


def run_id(given: str, *, state: str | None = None) -> UUID:
    """Return the id of one run; see `run_ids`."""
    return run_ids([given], state=state)[0]


def object_id(given: str, kind: Literal["alert", "backfill"]) -> UUID:
    """Return the id of an alert or backfill, which is given in full or by its first characters.

    Raises:
        CliError: it is no id, no object of the kind has such an id, or several have.
    """
    if (whole := as_uuid(given)) is not None:
        return whole
    listing = f"noonmark {kind} list"
    if not is_prefix(given):
        raise _no_id(kind, given, f"`{listing}` shows the ids")
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        found = completed(api, given, kind)
    if found is None:
        raise CliError(f"no {kind} has an id that begins with {given}; run `{listing}`")
    return found


def _no_id(kind: str, given: str, hint: str) -> CliError:
    return CliError(
        f"{kind} {given!r} is not an id, nor the first {LEAST} or more characters of one; {hint}",
        ExitCode.USAGE,
    )


def _run_of(api: Client, prefix: str, state: str | None) -> UUID:
    found = completed(api, prefix, "run", state) if state is not None else None
    if found is None and (found := completed(api, prefix, "run")) is None:
        raise CliError(f"no run has an id that begins with {prefix}; run `noonmark run list`")
    return found


def completed(api: Client, prefix: str, kind: str | None = None, state: str | None = None) -> UUID | None:
    """Return the only id that begins with a prefix, of jobs and runs or of one kind; None if there is none.

    Args:
        api: client of the API.
        prefix: the beginning of the id.
        kind: job, run, backfill or alert; None for jobs and runs.
        state: only those in this state.

    Raises:
        CliError: several do; with all of them.
    """
    answer = api.ids.find(prefix, kind=kind, state=state)
    found = answer["items"]
    if len(found) > 1:
        names = [f"  {one['id']}  {printable(one['job_name'] or '-')} ({one['state']})" for one in found]
        what = f"{state} {kind}" if state and kind else kind or "job and run"
        head = f"several {what} ids begin with {prefix}; give more characters:"
        raise CliError("\n".join([head, *names, *(["  …"] if answer["more"] else [])]))
    return UUID(str(found[0]["id"])) if found else None
