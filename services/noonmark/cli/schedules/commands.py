"""`noonmark schedule`: what a schedule will do, in instants and in plain English. Needs no database.

What does the work is imported when a command runs: other commands do not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from noonmark.cli.terminal.options import AsJson

app = typer.Typer(
    help="Preview schedules and explain them; no database is needed.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _rule(name: str, text: str, metavar: str) -> Any:
    return typer.Option(name, help=text, metavar=metavar, rich_help_panel="The schedule")


def _window(name: str, text: str, metavar: str) -> Any:
    return typer.Option(name, help=text, metavar=metavar, rich_help_panel="What is shown")


# All values are texts: what is wrong with one is told in the same way as what is wrong with an expression.
Text = str | None
Texts = list[str] | None

_RRULE = _rule("--rrule", "RFC 5545 lines: RRULE, RDATE, EXDATE, DTSTART; \\n between, or repeated.", "TEXT")
_EVERY = _rule("--every", "ISO 8601 duration, or seconds; counts from --start, else --after.", "DURATION")
_FILE = typer.Option(
    "--file",
    "-f",
    help="Job documents instead: YAML, JSON or JSON lines; - is stdin. Only their schedules are read:"
    " `noonmark submit --dry-run` checks whole documents.",
    metavar="FILE",
    rich_help_panel="The schedule",
)
_GAP = _rule("--dst-gap", "For times that the clocks leave out: auto, run_after, skip, shift.", "WORD")
_OVERLAP = _rule("--dst-overlap", "For times that the clocks bring twice: auto, first, last, both.", "WORD")
_DTSTART = _rule("--dtstart", "Local start of --rrule, such as 2026-03-08T02:30:00.", "LOCAL")
_ON_HOLIDAY = _rule(
    "--on-holiday", "For closed days: skip, next_business_day, previous_business_day.", "WORD"
)
_CALENDAR = _rule("--calendar", "What a calendar holds: JSON, YAML or iCalendar; repeatable.", "NAME=FILE")
_ZONE = _rule(
    "--zone",
    "IANA time zone, else UTC; with -f of documents that name none.",
    "ZONE",
)
_NAME = _rule("--name", "The job's name: what H is picked by.", "NAME")
_SIDES_ZONE = _rule("--zone", "IANA time zone of a side that names none; else UTC.", "ZONE")
_LIMIT = _window("--limit", "How many rows of each side are shown; else 20, and with --json 10000.", "N")
_DIFF_AFTER = _window("--after", "From here on; --days and max_runs count from it; else now.", "INSTANT")
_AFTER = _window("--after", "Only what comes strictly after this instant; else now.", "INSTANT")


def _command(view: str, fires: int) -> Callable[..., None]:
    """Return a command that shows a view of a schedule, with all options that make one up.

    Args:
        view: its name.
        fires: that it shows where nobody says how many.
    """

    def command(  # noqa: PLR0917 - each is an option
        context: typer.Context,
        cron: Annotated[Text, _rule("--cron", "Cron expression.", "EXPR")] = None,
        rrule: Annotated[Texts, _RRULE] = None,
        every: Annotated[Text, _EVERY] = None,
        at: Annotated[Text, _rule("--at", "One instant.", "INSTANT")] = None,
        file: Annotated[Text, _FILE] = None,
        dialect: Annotated[Text, _rule("--dialect", "Of --cron: unix or quartz.", "WORD")] = None,
        seconds_field: Annotated[
            Text, _rule("--seconds-field", "Where six fields have the seconds: first or last.", "WORD")
        ] = None,
        zone: Annotated[Text, _ZONE] = None,
        dst_gap: Annotated[Text, _GAP] = None,
        dst_overlap: Annotated[Text, _OVERLAP] = None,
        dtstart: Annotated[Text, _DTSTART] = None,
        start: Annotated[Text, _rule("--start", "No fire is before it.", "INSTANT")] = None,
        end: Annotated[Text, _rule("--end", "No fire is after it.", "INSTANT")] = None,
        max_runs: Annotated[Text, _rule("--max-runs", "No more fires than this.", "N")] = None,
        name: Annotated[Text, _NAME] = None,
        exclude: Annotated[
            Texts, _rule("--exclude-calendar", "Not on the days of this one; repeatable.", "NAME")
        ] = None,
        include: Annotated[
            Texts, _rule("--include-calendar", "Only on the days of this one; repeatable.", "NAME")
        ] = None,
        on_holiday: Annotated[Text, _ON_HOLIDAY] = None,
        calendar: Annotated[Texts, _CALENDAR] = None,
        after: Annotated[Text, _AFTER] = None,
        until: Annotated[Text, _window("--until", "Nothing after this instant.", "INSTANT")] = None,
        count: Annotated[str, _window("--count", "How many fires at most, up to 100000.", "N")] = str(fires),
        as_json: AsJson = False,
    ) -> None:
        from noonmark.cli.schedules import views as schedule_views  # noqa: PLC0415
        from noonmark.cli.schedules.request import ScheduleOptions  # noqa: PLC0415

        rule = {
            "cron": cron, "rrule": rrule, "every": every, "at": at, "dialect": dialect,
            "seconds_field": seconds_field, "dst_gap": dst_gap, "dst_overlap": dst_overlap,
            "dtstart": dtstart, "start": start, "end": end, "max_runs": max_runs,
            "exclude": exclude, "include": include, "on_holiday": on_holiday,
        }  # fmt: skip
        given = {key: value for key, value in rule.items() if value is not None and value != []}
        asked = ScheduleOptions(given, file, name, zone, calendar or [], after, until, count, context.args)
        schedule_views.show(view, asked, as_json=as_json)

    return command


# Words that are no options are let through: the command says which option they belong to.
_WORDS = {"allow_extra_args": True}

app.command(
    "next",
    help="Show the next fires, and what changes of the clocks do to them.",
    context_settings=_WORDS,
)(_command("next", 10))
app.command("explain", help="Say in plain English when a schedule fires.", context_settings=_WORDS)(
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
    new: Annotated[str, typer.Argument(metavar="B", help="What takes its place, written in the same ways.")],
    zone: Annotated[Text, _SIDES_ZONE] = None,
    days: Annotated[str, _window("--days", "How many days are compared.", "N")] = "30",
    limit: Annotated[Text, _LIMIT] = None,
    name: Annotated[Text, _NAME] = None,
    calendar: Annotated[Texts, _CALENDAR] = None,
    after: Annotated[Text, _DIFF_AFTER] = None,
    as_json: AsJson = False,
) -> None:
    """Show which fires are added and which removed when schedule B takes the place of A."""
    from noonmark.cli.schedules import diff as schedule_diff  # noqa: PLC0415
    from noonmark.cli.schedules.request import ScheduleOptions  # noqa: PLC0415

    asked = ScheduleOptions({}, None, name, zone, calendar or [], after)
    schedule_diff.show(old, new, days, limit, asked, as_json=as_json)
