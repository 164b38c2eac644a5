"""`noonmark namespace`: the default zone of a namespace's jobs, its cap, and the pause of all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noonmark.cli.connections.context import operator_settings
from noonmark.cli.connections.namespace_hints import without_jobs
from noonmark.cli.terminal.options import AsJson, Missed
from noonmark.cli.terminal.output import (
    Column,
    counted,
    field,
    shortened,
    show_fields,
    show_json,
    show_list,
    with_instants,
)
from noonmark.cli.terminal.problems import CliError, ExitCode
from noonmark.core.vocabulary import ResumeChoice

if TYPE_CHECKING:
    from noonmark.client import Client
    from noonmark.client.types.namespaces import NamespaceChange

app = typer.Typer(
    help="Set the default zone and the cap of a namespace; pause and resume all of its jobs.",
    no_args_is_help=True,
)

_CAP_DIGITS = 9
_TRIES: Final = 5
_SET: Final = ("timezone", "max_in_flight", "max_jobs")

Name = Annotated[str, typer.Argument(help="Name of the namespace.")]

_COLUMNS = (
    field("name", "NAMESPACE"),
    field("timezone"),
    field("max_in_flight", "MAX IN FLIGHT", numeric=True),
    field("max_jobs", "MAX JOBS", numeric=True),
    field("state"),
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
    if timezone is None and max_in_flight is None and max_jobs is None:
        raise CliError("nothing to set: give --timezone, --max-in-flight or --max-jobs", ExitCode.USAGE)
    wanted: dict[str, Any] = {}
    if timezone is not None:
        wanted["timezone"] = timezone
    if max_in_flight is not None:
        wanted["max_in_flight"] = _number(max_in_flight, "--max-in-flight")
    if max_jobs is not None:
        wanted["max_jobs"] = _number(max_jobs, "--max-jobs")
    _check(name)
    from noonmark.cli.connections.api import client  # noqa: PLC0415 - httpx takes a while to load

    with client(operator_settings()) as api:
        before = _put(api, name, wanted)
        changed = any(before[one] != value for one, value in wanted.items())
        hint = without_jobs(api, name) if changed and not as_json else None
    if as_json:
        show_json({"name": name, **wanted, "changed": changed})
        return
    for one, value in wanted.items():
        had = before[one] == value
        print(f"namespace {name} {'had' if had else 'has'} {_setting(one, value)}{' already' if had else ''}")
    if hint:
        print(hint)


def _put(api: Client, name: str, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    """Change some of what is set, and leave the rest as it is; returns what was set before.

    Raises:
        CliError: the API finds it wrong, or others change it all the time.
    """
    from noonmark.cli.connections.api import wrong_usage  # noqa: PLC0415
    from noonmark.client import ApiError  # noqa: PLC0415

    for _ in range(_TRIES):
        found = api.request("GET", f"/v1/namespaces/{name}")
        body = {one: found.data[one] for one in _SET} | dict(wanted)
        try:
            with wrong_usage():
                api.namespaces.put(name, body, if_match=found.etag)
        except ApiError as error:
            if error.status != 412:
                raise
            # Others have changed it since it was read.
            continue
        before: Mapping[str, Any] = found.data
        return before
    raise CliError(f"namespace {name} is changed by others all the time: try again in a moment")


def _setting(one: str, value: Any) -> str:
    if one == "timezone":
        return f"the zone {value}"
    if one == "max_jobs":
        return "no quota of jobs" if value is None else f"a quota of {counted(value, 'recurring job')}"
    return "no cap" if value is None else f"at most {counted(value, 'run')} of a lane in flight"


def _number(text: str | None, option: str) -> int | None:
    if text is None or text == "none":
        return None
    if not text.isdecimal() or len(text) > _CAP_DIGITS:
        raise CliError(f"{option} {text!r} is neither a whole number nor none", ExitCode.USAGE)
    return int(text)


@app.command()
def delete(name: Name, as_json: AsJson = False) -> None:
    """Give a namespace its defaults back. Refused while it is paused or has calendars; its jobs stay."""
    _check(name)
    from noonmark.cli.connections.api import client  # noqa: PLC0415
    from noonmark.client import ApiError  # noqa: PLC0415

    with client(operator_settings()) as api:
        try:
            api.namespaces.delete(name)
        except ApiError as error:
            if error.status != 404:
                raise
            raise CliError(
                f"nothing is set for a namespace {name!r}: `noonmark namespace list` shows those there are"
            ) from error
    if as_json:
        show_json({"name": name, "deleted": True})
    else:
        print(f"namespace {name} has the defaults again: zone UTC, no cap, not paused")


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List namespaces that were set or paused, or have a recurring job."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        rows = api.namespaces.list()
    if as_json:
        show_json({"items": rows})
        return
    show_list([with_instants(row, "paused_at") for row in rows], _COLUMNS)


@app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show a namespace, with its recurring jobs counted by state."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        if all(row["name"] != name for row in api.namespaces.list()):
            raise CliError(f"there is no namespace {name!r}: `noonmark namespace list` shows those there are")
        shown = api.namespaces.get(name)
    if as_json:
        show_json(shown)
    else:
        show_fields(with_instants(shown, "paused_at", "updated_at"))


@app.command()
def pause(
    name: Name,
    reason: Annotated[str | None, typer.Option(help="Why, for people.")] = None,
    as_json: AsJson = False,
) -> None:
    """Hold all jobs of a namespace, also those that are made from now on. Runs under way go on.

    Safe to repeat: given again it finishes what an interrupted call left.
    """
    _check(name)
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        done = _complete(lambda: api.namespaces.pause(name, reason), "held")
        # What the pause holds may be one-time jobs alone, which the hint does not see.
        unseen = done["changed"] and not (done["jobs"] or done["runs"] or as_json)
        hint = without_jobs(api, name) if unseen else None
    _show(name, "paused", done, as_json=as_json)
    if hint:
        print(hint)


@app.command()
def resume(name: Name, missed: Missed = ResumeChoice.SKIP, as_json: AsJson = False) -> None:
    """Let the jobs of a namespace go on that its pause held, and queue their runs.

    Jobs that were paused on their own account stay paused. Safe to repeat: given again it finishes what an
    interrupted call left.
    """
    _check(name)
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        done = _complete(lambda: api.namespaces.resume(name, missed.value), "go on")
        unseen = not (done["changed"] or done["jobs"] or done["runs"] or as_json)
        hint = without_jobs(api, name) if unseen else None
    _show(name, "resumed", done, as_json=as_json)
    if hint:
        print(hint)


def _complete(give: Callable[[], NamespaceChange], verb: str) -> dict[str, Any]:
    """Give an order until all jobs have followed, some thousands by each call; returns what it did."""
    done: dict[str, Any] = {**give()}
    while not done["complete"]:
        if sys.stderr.isatty():
            print(f"{counted(done['jobs'], 'job')} {verb}, {counted(done['runs'], 'run')} …", file=sys.stderr)
        more: dict[str, Any] = {**give()}
        counts = ("jobs", "runs", "jobs_with_held_instants")
        done |= {one: done[one] + more[one] for one in counts} | {"complete": more["complete"]}
    del done["complete"]
    return done


def _show(name: str, done: str, result: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        hidden = {"jobs_with_held_instants"} if done == "paused" else set()
        show_json({one: value for one, value in result.items() if one not in hidden})
        return
    jobs, runs, late = result["jobs"], result["runs"], result["jobs_with_held_instants"]
    told = (
        f"is {done}" if result["changed"] else f"was {done} before" if done == "paused" else "was not paused"
    )
    print(f"namespace {name} {told}: {counted(jobs, 'job')} {_verb(done, jobs)}, ", end="")
    print(f"{counted(runs, 'run')} {'wait' if done == 'paused' else 'queued'}")
    if late:
        print(f"{counted(late, 'job')} had instants held: they get their verdicts with the next claims")


def _verb(done: str, jobs: int) -> str:
    if done == "paused":
        return "held"
    return "goes on" if jobs == 1 else "go on"


def _check(name: str) -> None:
    """Refuse what is no name for a namespace.

    Raises:
        CliError: it is none.
    """
    from noonmark.store.namespaces.namespaces import NamespaceNameError, check_name  # noqa: PLC0415

    try:
        check_name(name)
    except NamespaceNameError as error:
        raise CliError(str(error), ExitCode.USAGE) from error
