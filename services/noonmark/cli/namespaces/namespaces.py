"""`noonmark namespace`: manage time zone and quotas of namespaces; pause and resume all jobs of one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from noonmark.cli.connections.api_pages import with_instants
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
)
from noonmark.cli.terminal.problems import CliError, ExitCode
from noonmark.core.states import ResumeChoice

if TYPE_CHECKING:
    from noonmark.client import Client
    from noonmark.client.types.namespaces import NamespaceChange

app = typer.Typer(
    help="Manage namespaces: default zone, quotas, pause and resume.",
    no_args_is_help=True,
)

_CAP_DIGITS = 9
_TRIES: Final = 5
_SET: Final = ("timezone", "max_in_flight", "max_jobs")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the namespace.")]

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
        typer.Option("--timezone", "--zone", metavar="ZONE", help="IANA time zone such as Europe/Berlin."),
    ] = None,
    max_in_flight: Annotated[
        str | None,
        typer.Option(
            metavar="N|none",
            help="Maximum queued and running runs of each lane; `none` for no limit.",
        ),
    ] = None,
    max_jobs: Annotated[
        str | None,
        typer.Option(
            metavar="N|none", help="Maximum recurring jobs, without cancelled ones; `none` for no limit."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Set the default time zone, the limit of runs in flight, and the quota of jobs.

    Existing jobs keep their zone, and stay even if they exceed the quota. The limit of runs in flight
    applies to runs that come due from now on.
    """
    if timezone is None and max_in_flight is None and max_jobs is None:
        raise CliError("nothing to set; give --timezone, --max-in-flight or --max-jobs", ExitCode.USAGE)
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
    """Change some settings and keep the others; return the old settings.

    Raises:
        CliError: the API rejects a value, or other users keep changing the namespace.
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
            # Another user changed it since it was read.
            continue
        before: Mapping[str, Any] = found.data
        return before
    raise CliError(f"other users keep changing namespace {name}; try again later")


def _setting(one: str, value: Any) -> str:
    if one == "timezone":
        return f"the zone {value}"
    if one == "max_jobs":
        return "no quota of jobs" if value is None else f"a quota of {counted(value, 'recurring job')}"
    return "no limit of runs" if value is None else f"a limit of {counted(value, 'run')} in flight per lane"


def _number(text: str | None, option: str) -> int | None:
    if text is None or text == "none":
        return None
    if not text.isdecimal() or len(text) > _CAP_DIGITS:
        raise CliError(f"{option} {text!r} is not a whole number or none", ExitCode.USAGE)
    return int(text)


@app.command()
def delete(name: Name, as_json: AsJson = False) -> None:
    """Reset a namespace to the defaults; its jobs stay. Rejected while it is paused or has calendars."""
    _check(name)
    from noonmark.cli.connections.api import client  # noqa: PLC0415
    from noonmark.client import ApiError  # noqa: PLC0415

    with client(operator_settings()) as api:
        try:
            api.namespaces.delete(name)
        except ApiError as error:
            if error.status != 404:
                raise
            raise CliError(f"namespace {name!r} has no settings; run `noonmark namespace list`") from error
    if as_json:
        show_json({"name": name, "deleted": True})
    else:
        print(f"namespace {name} reset to the defaults: zone UTC, no limit of runs, not paused")


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List namespaces that have settings, a pause or a recurring job."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        rows = api.namespaces.list()
    if as_json:
        show_json({"items": rows})
        return
    empty = "no namespaces found; one with a recurring job or with settings is listed here"
    show_list([with_instants(row) for row in rows], _COLUMNS, empty=empty)


@app.command()
def show(name: Name, as_json: AsJson = False) -> None:
    """Show a namespace with the number of recurring jobs by state."""
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        if all(row["name"] != name for row in api.namespaces.list()):
            raise CliError(f"namespace {name!r} does not exist; run `noonmark namespace list`")
        shown = api.namespaces.get(name)
    if as_json:
        show_json(shown)
    else:
        show_fields(with_instants(shown))


@app.command()
def pause(
    name: Name,
    reason: Annotated[str | None, typer.Option(help="Reason, shown to users.")] = None,
    as_json: AsJson = False,
) -> None:
    """Pause all jobs of a namespace, including new ones. Running runs continue.

    Safe to repeat: a second call finishes an interrupted one.
    """
    _check(name)
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        done = _complete(lambda: api.namespaces.pause(name, reason), "held")
        # The hint counts recurring jobs, but the pause may apply to one-time jobs only.
        unseen = done["changed"] and not (done["jobs"] or done["runs"] or as_json)
        hint = without_jobs(api, name) if unseen else None
    _show(name, "paused", done, as_json=as_json)
    if hint:
        print(hint)


@app.command()
def resume(name: Name, missed: Missed = ResumeChoice.SKIP, as_json: AsJson = False) -> None:
    """Resume the jobs that the pause of the namespace paused, and queue their runs.

    Jobs that were paused separately stay paused. Safe to repeat: a second call finishes an
    interrupted one.
    """
    _check(name)
    from noonmark.cli.connections.api import client  # noqa: PLC0415

    with client(operator_settings()) as api:
        done = _complete(lambda: api.namespaces.resume(name, missed.value), "resumed")
        unseen = not (done["changed"] or done["jobs"] or done["runs"] or as_json)
        hint = without_jobs(api, name) if unseen else None
    _show(name, "resumed", done, as_json=as_json)
    if hint:
        print(hint)


def _complete(request: Callable[[], NamespaceChange], verb: str) -> dict[str, Any]:
    """Repeat a request until it has reached all jobs, some thousands with each call; return the totals."""
    done: dict[str, Any] = {**request()}
    while not done["complete"]:
        if sys.stderr.isatty():
            print(f"{counted(done['jobs'], 'job')} {verb}, {counted(done['runs'], 'run')} …", file=sys.stderr)
        more: dict[str, Any] = {**request()}
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
    before, verb = ("paused", "pause") if done == "paused" else ("active", "resume")
    if not (result["changed"] or jobs or runs):
        print(f"namespace {name} was {before} already: nothing to {verb}")
        return
    state = f"is {done}" if result["changed"] else f"was {before} already"
    print(f"namespace {name} {state}: {counted(jobs, 'job')} {done}, ", end="")
    print(f"{counted(runs, 'run')} {'deferred' if done == 'paused' else 'queued'}")
    if late:
        print(f"{counted(late, 'job')} had instants in the pause: the next claims decide about them")


def _check(name: str) -> None:
    """Check the name of a namespace.

    Raises:
        CliError: it is not a valid name.
    """
    from noonmark.store.namespaces.namespaces import NamespaceNameError, check_name  # noqa: PLC0415

    try:
        check_name(name)
    except NamespaceNameError as error:
        raise CliError(str(error), ExitCode.USAGE) from error
