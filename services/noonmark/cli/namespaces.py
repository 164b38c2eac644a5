"""`noonmark namespace`: the default zone of a namespace's jobs, its cap, and the pause of all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noonmark.cli.context import changing, operator_settings
from noonmark.cli.options import AsJson, Missed
from noonmark.cli.output import Column, Row, field, shortened, show_fields, show_json, show_list
from noonmark.cli.problems import CliError, ExitCode
from noonmark.core.words import ResumeChoice

if TYPE_CHECKING:
    import psycopg

    from noonmark.store.namespace_pauses import PauseResult

app = typer.Typer(
    help="Set the default zone and the cap of a namespace; pause and resume all of its jobs.",
    no_args_is_help=True,
)

_CAP_DIGITS = 9

Name = Annotated[str, typer.Argument(help="Name of the namespace.")]

_COLUMNS = (
    field("name", "NAMESPACE"),
    field("timezone"),
    field("max_in_flight", "MAX IN FLIGHT", numeric=True),
    field("max_jobs", "MAX JOBS", numeric=True),
    Column("STATE", lambda row: "paused" if row["paused_at"] else "active"),
    field("paused_at", "PAUSED"),
    Column("REASON", lambda row: shortened(row["pause_reason"], 80), cut=True),
)


@app.command("set")
def set_(
    *,
    name: Name,
    timezone: Annotated[
        str | None,
        typer.Option("--timezone", "--zone", metavar="ZONE", help="IANA zone such as Europe/Berlin."),
    ] = None,
    max_in_flight: Annotated[
        str | None,
        typer.Option(
            metavar="N|none",
            help="Most runs of each lane that are queued or run at a time; none: any number.",
        ),
    ] = None,
    max_jobs: Annotated[
        str | None,
        typer.Option(metavar="N|none", help="Most recurring jobs that are not cancelled; none: any number."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Set the zone of schedules that name none, the cap on runs in flight, and the quota of jobs.

    Jobs that exist keep the zone they were made with, and stay where there are more than the quota; the cap
    holds for every run that comes due from now on.
    """
    from noonmark.store.namespaces import (  # noqa: PLC0415
        set_max_in_flight,
        set_max_jobs,
        set_timezone,
        without_jobs,
    )

    if timezone is None and max_in_flight is None and max_jobs is None:
        raise CliError("nothing to set: give --timezone, --max-in-flight or --max-jobs", ExitCode.USAGE)
    most = _number(max_in_flight, "--max-in-flight")
    jobs = _number(max_jobs, "--max-jobs")
    told: list[str] = []
    shown: dict[str, object] = {"name": name}
    changed = False
    with _connected() as connection:
        if timezone is not None:
            done = set_timezone(connection, name, timezone)
            told.append(_had(name, f"the zone {timezone}", changed=done))
            shown["timezone"], changed = timezone, done
        if max_in_flight is not None:
            done = set_max_in_flight(connection, name, most)
            cap = (
                "no cap"
                if most is None
                else f"at most {most:,} {'run' if most == 1 else 'runs'} of a lane in flight"
            )
            told.append(_had(name, cap, changed=done))
            shown["max_in_flight"], changed = most, changed or done
        if max_jobs is not None:
            done = set_max_jobs(connection, name, jobs)
            quota = "no quota of jobs" if jobs is None else f"a quota of {_count(jobs, 'recurring job')}"
            told.append(_had(name, quota, changed=done))
            shown["max_jobs"], changed = jobs, changed or done
        hint = without_jobs(connection, name) if changed and not as_json else None
    if as_json:
        show_json({**shown, "changed": changed})
        return
    print("\n".join(told))
    if hint:
        print(hint)


def _number(text: str | None, option: str) -> int | None:
    if text is None or text == "none":
        return None
    if not text.isdecimal() or len(text) > _CAP_DIGITS:
        raise CliError(f"{option} {text!r} is neither a whole number nor none", ExitCode.USAGE)
    return int(text)


def _had(name: str, what: str, *, changed: bool) -> str:
    return f"namespace {name} {'has' if changed else 'had'} {what}{'' if changed else ' already'}"


@app.command()
def delete(name: Name, as_json: AsJson = False) -> None:
    """Give a namespace its defaults back. Refused while it is paused or has calendars; its jobs stay."""
    from noonmark.store.namespaces import delete_namespace  # noqa: PLC0415

    with _connected() as connection:
        deleted = delete_namespace(connection, name)
    if not deleted:
        raise CliError(
            f"nothing is set for a namespace {name!r}: `noonmark namespace list` shows those there are"
        )
    if as_json:
        show_json({"name": name, "deleted": True})
    else:
        print(f"namespace {name} has the defaults again: zone UTC, no cap, not paused")


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List namespaces that were set or paused, or have a recurring job."""
    rows = _rows()
    if as_json:
        show_json({"items": rows})
        return
    show_list(rows, _COLUMNS)


@app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show a namespace, with its recurring jobs counted by state."""
    from noonmark.store.namespaces import count_jobs  # noqa: PLC0415

    rows = _rows(name)
    if not rows:
        raise CliError(f"there is no namespace {name!r}: `noonmark namespace list` shows those there are")
    with _connected() as connection:
        counts = count_jobs(connection, name)
    jobs: dict[str, int] = {}
    for state, paused_by, count in counts:
        key = f"{state}_by_{paused_by}" if paused_by else state
        jobs[key] = jobs.get(key, 0) + count
    shown = {**rows[0], "recurring_jobs": jobs}
    if as_json:
        show_json(shown)
    else:
        show_fields(shown)


@app.command()
def pause(
    name: Name,
    reason: Annotated[str | None, typer.Option(help="Why, for people.")] = None,
    as_json: AsJson = False,
) -> None:
    """Hold all jobs of a namespace, also those that are made from now on. Runs under way go on.

    Safe to repeat: given again it finishes what an interrupted call left.
    """
    from noonmark.store.namespace_pauses import pause_namespace  # noqa: PLC0415
    from noonmark.store.namespaces import without_jobs  # noqa: PLC0415

    with _connected() as connection:
        done = pause_namespace(connection, name, reason, progress=_progress("held"))
        # What the pause holds may be one-time jobs alone, which the hint does not see.
        unseen = done.changed and not (done.jobs or done.runs or as_json)
        hint = without_jobs(connection, name) if unseen else None
    _show(name, "paused", done, as_json=as_json)
    if hint:
        print(hint)


@app.command()
def resume(name: Name, missed: Missed = ResumeChoice.SKIP, as_json: AsJson = False) -> None:
    """Let the jobs of a namespace go on that its pause held, and queue their runs.

    Jobs that were paused on their own account stay paused. Safe to repeat: given again it finishes what an
    interrupted call left.
    """
    from noonmark.store.namespace_pauses import resume_namespace  # noqa: PLC0415
    from noonmark.store.namespaces import without_jobs  # noqa: PLC0415

    with _connected() as connection:
        done = resume_namespace(connection, name, missed, progress=_progress("go on"))
        unseen = not (done.changed or done.jobs or done.runs or as_json)
        hint = without_jobs(connection, name) if unseen else None
    _show(name, "resumed", done, as_json=as_json)
    if hint:
        print(hint)


def _show(name: str, done: str, result: PauseResult, *, as_json: bool) -> None:
    if as_json:
        shown = {"name": name, "state": "paused" if done == "paused" else "active", **result._asdict()}
        if done == "paused":
            del shown["jobs_with_held_instants"]
        show_json(shown)
        return
    told = f"is {done}" if result.changed else f"was {done} before" if done == "paused" else "was not paused"
    print(f"namespace {name} {told}: {_count(result.jobs, 'job')} {_verb(done, result.jobs)}, ", end="")
    print(f"{_count(result.runs, 'run')} {'wait' if done == 'paused' else 'queued'}")
    if late := result.jobs_with_held_instants:
        print(f"{_count(late, 'job')} had instants held: they get their verdicts with the next claims")


def _verb(done: str, jobs: int) -> str:
    if done == "paused":
        return "held"
    return "goes on" if jobs == 1 else "go on"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _progress(verb: str) -> Callable[[int, int], None] | None:
    """Tell on stderr how far long work is, where a person looks on."""
    if not sys.stderr.isatty():
        return None

    def tell(jobs: int, runs: int) -> None:
        print(f"{_count(jobs, 'job')} {verb}, {_count(runs, 'run')} …", file=sys.stderr)

    return tell


def _rows(name: str | None = None) -> list[dict[str, Any]]:
    from noonmark.store.namespaces import list_namespaces  # noqa: PLC0415

    with _connected() as connection:
        found: list[Row] = [row._asdict() for row in list_namespaces(connection, name)]
    return [dict(row) for row in found]


@contextmanager
def _connected() -> Iterator[psycopg.Connection]:
    """Open a connection; what is wrong with what was asked for ends in a sentence."""
    from noonmark.core.zones import ZoneError  # noqa: PLC0415
    from noonmark.store.namespaces import NamespaceError, NamespaceNameError  # noqa: PLC0415

    settings = operator_settings()
    try:
        with changing(settings) as connection:
            yield connection
    except ZoneError as error:
        raise CliError(error.message, ExitCode.USAGE) from error
    except NamespaceNameError as error:
        raise CliError(str(error), ExitCode.USAGE) from error
    except NamespaceError as error:
        raise CliError(str(error)) from error
