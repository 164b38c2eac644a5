"""`noonmark schedule`: preview schedules and explain them in plain English. Needs no database.

The modules that do the work are imported when a command runs, so that other commands start fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from noonmark.cli.terminal.options import AsJson

app = typer.Typer(
    help="Preview and explain schedules, without a database.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _rule(name: str, text: str, metavar: str) -> Any:
    return typer.Option(name, help=text, metavar=metavar, rich_help_panel="Schedule")


def _window(name: str, text: str, metavar: str) -> Any:
    return typer.Option(name, help=text, metavar=metavar, rich_help_panel="Output")


# All values are strings, so that an invalid value is reported in the same way as an invalid expression.
Text = str | None
Texts = list[str] | None

_RRULE = _rule(
    "--rrule", "RFC 5545 lines: RRULE, RDATE, EXDATE, DTSTART; separate with \\n, or repeat.", "TEXT"
)
_EVERY = _rule(
    "--every",
    "Duration such as 15m or PT15M, or seconds; counts from --start, else from --after.",
    "DURATION",
)
_FILE = typer.Option(
    "--file",
    "-f",
    help="Job documents: YAML, JSON or JSON lines; - is stdin. Only their schedules are read; use"
    " `noonmark submit --dry-run` to check whole documents.",
    metavar="FILE",
    rich_help_panel="Schedule",
)
_SECONDS_FIELD = _rule("--seconds-field", "Position of the seconds in six fields: first or last.", "WORD")
_GAP = _rule("--dst-gap", "For skipped local times: auto, run_after, skip, shift.", "WORD")
_OVERLAP = _rule("--dst-overlap", "For repeated local times: auto, first, last, both.", "WORD")
_DTSTART = _rule("--dtstart", "Local start of --rrule, such as 2026-03-08T02:30:00.", "LOCAL")
_ON_HOLIDAY = _rule(
    "--on-holiday", "For closed days: skip, next_business_day, previous_business_day.", "WORD"
)
_EXCLUDE = _rule("--exclude-calendar", "Skip the days of this calendar; repeatable.", "NAME")
_INCLUDE = _rule("--include-calendar", "Only the days of this calendar; repeatable.", "NAME")
_CALENDAR = _rule("--calendar", "File of a calendar: JSON, YAML or iCalendar; repeatable.", "NAME=FILE")
_ZONE = _rule("--zone", "IANA time zone; with -f, of documents that name none. (default: UTC)", "ZONE")
_NAME = _rule("--name", "Name of the job; H is derived from it.", "NAME")
_START = _rule("--start", "No fires before this instant.", "INSTANT")
_END = _rule("--end", "No fires after this instant.", "INSTANT")
_MAX_RUNS = _rule("--max-runs", "Fires after which the schedule ends: max_runs of the job.", "N")
_SIDES_ZONE = _rule("--zone", "IANA time zone of a side that names none. (default: UTC)", "ZONE")
_LIMIT = _window("--limit", "Maximum rows for each side. (default: 20; 10000 with --json)", "N")
_DIFF_AFTER = _window("--after", "Start of the comparison, of --days and max_runs. (default: now)", "INSTANT")
_AFTER = _window("--after", "Only fires strictly after this instant. (default: now)", "INSTANT")
_UNTIL = _window("--until", "Only fires up to this instant.", "INSTANT")
_COUNT = _window("--count", "Number of fires to show, up to 100000.", "N")


def _command(view: str, fires: int) -> Callable[..., None]:
    """Return a command that shows a view of a schedule, with all options of a schedule.

    Args:
        view: name of the view.
        fires: default of `--count`.
    """

    def command(  # noqa: PLR0917 - each is an option
        context: typer.Context,
        cron: Annotated[Text, _rule("--cron", "Cron expression.", "EXPR")] = None,
        rrule: Annotated[Texts, _RRULE] = None,
        every: Annotated[Text, _EVERY] = None,
        at: Annotated[Text, _rule("--at", "A single instant.", "INSTANT")] = None,
        file: Annotated[Text, _FILE] = None,
        dialect: Annotated[Text, _rule("--dialect", "Dialect of --cron: unix or quartz.", "WORD")] = None,
        seconds_field: Annotated[Text, _SECONDS_FIELD] = None,
        zone: Annotated[Text, _ZONE] = None,
        dst_gap: Annotated[Text, _GAP] = None,
        dst_overlap: Annotated[Text, _OVERLAP] = None,
        dtstart: Annotated[Text, _DTSTART] = None,
        start: Annotated[Text, _START] = None,
        end: Annotated[Text, _END] = None,
        max_runs: Annotated[Text, _MAX_RUNS] = None,
        name: Annotated[Text, _NAME] = None,
        exclude: Annotated[Texts, _EXCLUDE] = None,
        include: Annotated[Texts, _INCLUDE] = None,
        on_holiday: Annotated[Text, _ON_HOLIDAY] = None,
        calendar: Annotated[Texts, _CALENDAR] = None,
        after: Annotated[Text, _AFTER] = None,
        until: Annotated[Text, _UNTIL] = None,
        count: Annotated[str, _COUNT] = str(fires),
        as_json: AsJson = False,
    ) -> None:
        rule = {
            "cron": cron, "rrule": rrule, "every": every, "at": at, "dialect": dialect,
            "seconds_field": seconds_field, "dst_gap": dst_gap, "dst_overlap": dst_overlap,
            "dtstart": dtstart, "start": start, "end": end, "max_runs": max_runs,
            "exclude": exclude, "include": include, "on_holiday": on_holiday,
        }  # fmt: skip
        _show(view, rule, (file, name, zone, calendar or [], after, until, count, context.args), as_json)

    return command


def _show(view: str, rule: dict[str, Any], rest: tuple[Any, ...], as_json: bool) -> None:
    from noonmark.cli.schedules import views as schedule_views  # noqa: PLC0415
    from noonmark.cli.schedules.request import ScheduleOptions  # noqa: PLC0415

    given = {key: value for key, value in rule.items() if value is not None and value != []}
    schedule_views.show(view, ScheduleOptions(given, *rest), as_json=as_json)


# Extra words are accepted here: the command then says which option they belong to.
_WORDS = {"allow_extra_args": True}

app.command(
    "next",
    help="Show the next fires, and how clock changes affect them.",
    context_settings=_WORDS,
)(_command("next", 10))
app.command("explain", help="Explain in plain English when a schedule fires.", context_settings=_WORDS)(
    _command("explain", 3)
)


@app.command("diff")
def difference(  # noqa: PLR0917 - each is an option
    old: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help='Cron expression, schedule or job as JSON, such as \'{"every": "PT15M"}\' or'
            ' \'{"rrule": "FREQ=DAILY", "dtstart": "2026-01-05T09:00:00"}\', or @FILE with one.',
        ),
    ],
    new: Annotated[str, typer.Argument(metavar="B", help="The schedule that replaces A, in the same form.")],
    zone: Annotated[Text, _SIDES_ZONE] = None,
    days: Annotated[str, _window("--days", "Number of days to compare.", "N")] = "30",
    limit: Annotated[Text, _LIMIT] = None,
    name: Annotated[Text, _NAME] = None,
    calendar: Annotated[Texts, _CALENDAR] = None,
    after: Annotated[Text, _DIFF_AFTER] = None,
    as_json: AsJson = False,
) -> None:
    """Show which fires are added and removed when schedule B replaces A."""
    from noonmark.cli.schedules import diff as schedule_diff  # noqa: PLC0415
    from noonmark.cli.schedules.request import ScheduleOptions  # noqa: PLC0415

    options = ScheduleOptions({}, None, name, zone, calendar or [], after)
    schedule_diff.show(old, new, days, limit, options, as_json=as_json)
