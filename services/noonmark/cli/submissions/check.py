"""`noonmark submit --dry-run`: documents checked as intake checks them; nothing is published."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as field_of
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import typer

from noonmark.cli.submissions.submit import as_json_text, create_of, word_of
from noonmark.cli.terminal.output import field, printable, show_json, show_list
from noonmark.cli.terminal.problems import ExitCode, database_address, first_line
from noonmark.core.schedules.time_facts import TimeFacts

if TYPE_CHECKING:
    from noonmark.schemas.events.submissions import Submission
    from noonmark.settings import Settings
    from noonmark.store.cluster.catalogues import Catalogue


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What documents are checked with.

    Attributes:
        now: the instant of the submission.
        ledger_floor: a `run_at` before it is refused.
        facts: default zones, calendars, pauses and limits; of no namespace where no database was asked.
        pools: names of those there are.
        catalogues: what the live workers of each pool can run.
        database: its address; None: none answered.
        told: a sentence on what was checked with.
    """

    now: datetime
    ledger_floor: datetime
    facts: TimeFacts
    database: str | None
    told: str
    pools: frozenset[str] = frozenset()
    catalogues: Mapping[str, Catalogue] = field_of(default_factory=dict)


_COLUMNS = (
    field("document", "#", numeric=True),
    field("type", "ASKS FOR"),
    field("job", elastic=True),
    field("result"),
    field("next_fire_at", "NEXT FIRE"),
    field("note", elastic=True),
)


def check_documents(
    settings: Settings, documents: Sequence[dict[str, Any]], *, source: str, as_json: bool
) -> None:
    """Show of each document whether intake would take it, and when it fires next or what is wrong.

    Whether a name is taken already, or a job that is meant exists, is not looked at.

    Raises:
        typer.Exit: code 1, some document is refused.
    """
    ground = read_context(settings)
    checked = [
        check(ground, document, number, source=source, max_bytes=settings.max_submission_bytes)
        for number, document in enumerate(documents, start=1)
    ]
    refused = sum(one["result"] == "refused" for one in checked)
    if as_json:
        show_json({"items": checked, "refused": refused, "database": ground.database})
    else:
        show_list(checked, _COLUMNS)
        for line in _problems(checked):
            print(line)
        total = f"{len(checked)} document{'' if len(checked) == 1 else 's'}"
        verdict = f"{refused} would be refused" if refused else "all would be taken"
        print(f"\n{total} checked, {verdict}; nothing is published")
        print(ground.told)
    if refused:
        raise typer.Exit(ExitCode.PROBLEM)


def read_context(settings: Settings) -> CheckContext:
    """Ask the database for its time, ledger floor, facts, pools and workers, if it answers."""
    import psycopg  # noqa: PLC0415

    from noonmark.store.cluster.catalogues import live_catalogues  # noqa: PLC0415
    from noonmark.store.cluster.pools import pool_names  # noqa: PLC0415
    from noonmark.store.database.connect import connect  # noqa: PLC0415
    from noonmark.store.schedules.time_facts import read_time_facts  # noqa: PLC0415

    address = database_address(settings.dsn)
    try:
        with connect(settings.dsn, application="cli", autocommit=True) as connection:
            row = connection.execute("select noonmark_now(), ledger_floor from install").fetchone()
            assert row is not None
            facts = read_time_facts(connection)
            pools, catalogues = frozenset(pool_names(connection)), live_catalogues(connection)
    except (
        psycopg.OperationalError,
        psycopg.errors.UndefinedTable,
        psycopg.errors.UndefinedFunction,
    ) as error:
        now = datetime.now(UTC)
        told = (
            f"checked without the database {address} ({first_line(error)}): default zones are UTC; calendars,"
            " pools, handlers and limits are not looked at"
        )
        return CheckContext(now, now - timedelta(days=settings.retention_days), TimeFacts(), None, told)
    told = f"checked with the zones, calendars, pools, live workers and limits of the database {address}"
    return CheckContext(row[0], row[1], facts, address, told, pools, catalogues)


def check(
    ground: CheckContext, document: dict[str, Any], number: int, *, source: str, max_bytes: int
) -> dict[str, Any]:
    """Check one document or event.

    Returns:
        Its number, what it asks for and of which job, `result` (`ok` or `refused`), `next_fire_at`, a `note`,
        and `errors` with pointer into the document, message and what was expected.

    Raises:
        CliError: it has no JSON form.
    """
    from noonmark.schemas.events.envelope import STRUCTURED_HEADERS, parse_event  # noqa: PLC0415
    from noonmark.schemas.events.submissions import parse_submission  # noqa: PLC0415
    from noonmark.schemas.problems.refusal import Refused  # noqa: PLC0415

    is_event = "specversion" in document
    event = document if is_event else create_of(document, source)
    notes: list[str] = []
    if ground.database is None and (plain := _without_calendars(event)) is not None:
        event = plain
        notes.append("its calendars are not looked at")
    data = event.get("data")
    shown: dict[str, Any] = {
        "document": number,
        "type": word_of(str(event.get("type"))),
        "job": (data.get("name") or data.get("job_id")) if isinstance(data, dict) else None,
        "result": "ok",
        "next_fire_at": None,
        "note": None,
        "errors": [],
    }
    try:
        parsed = parse_event(as_json_text(event, number), STRUCTURED_HEADERS, max_bytes=max_bytes)
        submission = parse_submission(
            parsed, now=ground.now, ledger_floor=ground.ledger_floor, facts=ground.facts
        )
        _check_references(submission, ground)
    except Refused as refused:
        shown["errors"] = [
            {
                "pointer": item.pointer if is_event else item.pointer.removeprefix("/data"),
                "message": item.message,
                "expected": item.expected,
            }
            for item in refused.errors
        ]
        return {**shown, "result": "refused"}
    at, note = _next_fire(submission, ground)
    if note:
        notes.append(note)
    return {**shown, "next_fire_at": at, "note": "; ".join(notes) or None}


def _check_references(submission: Submission, ground: CheckContext) -> None:
    """Look for what a job names: its pool, who can run it, its limits.

    Raises:
        Refused: some of it is not there.
    """
    from noonmark.schemas.events.submissions import CreateJob, UpdateJob  # noqa: PLC0415
    from noonmark.schemas.problems.refusal import Refused  # noqa: PLC0415
    from noonmark.store.jobs.requests import lacking  # noqa: PLC0415

    if ground.database is None or not isinstance(submission, CreateJob | UpdateJob):
        return
    spec = submission.spec
    limits = ground.facts.limits_of(spec.namespace)
    found = lacking(spec, limits, ground.pools, ground.catalogues)
    if found:
        raise Refused(replace(error, pointer="/data" + error.pointer) for error in found)


def _next_fire(submission: Submission, ground: CheckContext) -> tuple[datetime | None, str | None]:
    """Return when a job fires next, and what is to be said about it; orders have no such instant."""
    from noonmark.schemas.events.submissions import CreateJob, UpdateJob  # noqa: PLC0415

    if not isinstance(submission, CreateJob | UpdateJob):
        return None, None
    spec = submission.spec
    at = spec.schedule.first(ground.now) if spec.schedule is not None else spec.run_at
    if isinstance(submission, CreateJob) and spec.namespace in ground.facts.paused:
        return at, f"namespace {spec.namespace} is paused: the job would be made held"
    if at is None and isinstance(submission, CreateJob):
        return None, "at once"
    return at, None


def _without_calendars(event: dict[str, Any]) -> dict[str, Any] | None:
    """Return the event without its schedule's calendars; None where it names none."""
    data = event.get("data")
    schedule = data.get("schedule") if isinstance(data, dict) else None
    if not isinstance(schedule, dict) or not isinstance(schedule.get("calendars"), dict):
        return None
    plain = copy.deepcopy(event)
    del plain["data"]["schedule"]["calendars"]
    return plain


def _problems(checked: Sequence[dict[str, Any]]) -> Iterator[str]:
    for one in checked:
        if one["errors"]:
            yield printable(
                f"document {one['document']}" + (f" ({one['job']})" if one["job"] else "")
            ).strip()
        for item in one["errors"]:
            expected = f"; expected {item['expected']}" if item["expected"] else ""
            yield printable(f"  {item['pointer'] or 'document'}: {item['message']}{expected}")
