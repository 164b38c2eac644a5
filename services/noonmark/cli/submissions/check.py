"""`noonmark submit --dry-run`: check documents as intake does, without publishing them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as field_of
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import typer

from noonmark.cli.submissions.events import as_json_text, create_of, word_of
from noonmark.cli.terminal.output import field, printable, show_json, show_list
from noonmark.cli.terminal.problems import ExitCode, field_text, first_line
from noonmark.core.schedules.time_facts import TimeFacts

if TYPE_CHECKING:
    from noonmark.schemas.events.submissions import Submission
    from noonmark.settings import Settings
    from noonmark.store.cluster.catalogues import Catalogue


@dataclass(frozen=True, slots=True)
class CheckContext:
    """State of the installation that documents are checked against.

    Attributes:
        now: the instant of the submission.
        ledger_floor: a `run_at` before it is refused.
        facts: default zones, calendars, pauses and limits; empty without a database.
        pools: names of the pools.
        catalogues: job types and handlers of the live workers of each pool.
        database: address of the database; None if it was unreachable.
        note: a sentence about what was checked.
    """

    now: datetime
    ledger_floor: datetime
    facts: TimeFacts
    database: str | None
    note: str
    pools: frozenset[str] = frozenset()
    catalogues: Mapping[str, Catalogue] = field_of(default_factory=dict)


_COLUMNS = (
    field("document", "#", numeric=True),
    field("type", "REQUEST"),
    field("job", elastic=True),
    field("result"),
    field("next_fire_at", "NEXT FIRE"),
    field("note", elastic=True),
)


def check_documents(
    settings: Settings, documents: Sequence[dict[str, Any]], *, source: str, as_json: bool
) -> None:
    """Show for each document whether intake would accept it, with its next fire or its problems.

    Not checked: whether a name is already in use, and whether a job exists.

    Raises:
        typer.Exit: code 1: a document is rejected.
    """
    context = read_context(settings)
    checked = [
        check(context, document, number, source=source, max_bytes=settings.max_submission_bytes)
        for number, document in enumerate(documents, start=1)
    ]
    refused = sum(one["result"] == "refused" for one in checked)
    if as_json:
        show_json({"items": checked, "refused": refused, "database": context.database})
    else:
        show_list(checked, _COLUMNS)
        for line in _problems(checked):
            print(line)
        total = f"{len(checked)} document{'' if len(checked) == 1 else 's'}"
        verdict = f"{refused} would be rejected" if refused else "all would be accepted"
        print(f"\n{total} checked, {verdict}; dry run, nothing published")
        print(context.note)
    if refused:
        raise typer.Exit(ExitCode.PROBLEM)


def read_context(settings: Settings) -> CheckContext:
    """Read time, ledger floor, facts, pools and workers from the database, if it is reachable."""
    import psycopg  # noqa: PLC0415

    from noonmark.settings.postgres_url import database_address  # noqa: PLC0415
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
        note = (
            f"checked without the database {address} ({first_line(error)}): default zones are UTC; calendars,"
            " pools, handlers and limits are not checked"
        )
        return CheckContext(now, now - timedelta(days=settings.retention_days), TimeFacts(), None, note)
    note = f"checked with the zones, calendars, pools, live workers and limits of the database {address}"
    return CheckContext(row[0], row[1], facts, address, note, pools, catalogues)


def check(
    context: CheckContext, document: dict[str, Any], number: int, *, source: str, max_bytes: int
) -> dict[str, Any]:
    """Check one document or event.

    Returns:
        Its number, type, job, `result` (`ok` or `refused`), `next_fire_at`, a `note`,
        and `errors` with pointer, message and expected value.

    Raises:
        CliError: the document has no JSON form.
    """
    from noonmark.schemas.events.envelope import STRUCTURED_HEADERS, parse_event  # noqa: PLC0415
    from noonmark.schemas.events.submissions import parse_submission  # noqa: PLC0415
    from noonmark.schemas.problems.refusal import Refused  # noqa: PLC0415

    is_event = "specversion" in document
    event = document if is_event else create_of(document, source)
    notes: list[str] = []
    if context.database is None and (plain := _without_calendars(event)) is not None:
        event = plain
        notes.append("calendars not checked")
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
            parsed, now=context.now, ledger_floor=context.ledger_floor, facts=context.facts
        )
        _check_references(submission, context)
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
    at, note = _next_fire(submission, context)
    if note:
        notes.append(note)
    return {**shown, "next_fire_at": at, "note": "; ".join(notes) or None}


def _check_references(submission: Submission, context: CheckContext) -> None:
    """Check what a job refers to: its pool, its workers, its limits.

    Raises:
        Refused: something does not exist.
    """
    from noonmark.schemas.events.submissions import CreateJob, UpdateJob  # noqa: PLC0415
    from noonmark.schemas.problems.refusal import Refused  # noqa: PLC0415
    from noonmark.store.jobs.requests import lacking  # noqa: PLC0415

    if context.database is None or not isinstance(submission, CreateJob | UpdateJob):
        return
    spec = submission.spec
    limits = context.facts.limits_of(spec.namespace)
    found = lacking(spec, limits, context.pools, context.catalogues)
    if found:
        raise Refused(replace(error, pointer="/data" + error.pointer) for error in found)


def _next_fire(submission: Submission, context: CheckContext) -> tuple[datetime | None, str | None]:
    """Return the next fire of a job and a note about it; other requests have no fire."""
    from noonmark.schemas.events.submissions import CreateJob, UpdateJob  # noqa: PLC0415

    if not isinstance(submission, CreateJob | UpdateJob):
        return None, None
    spec = submission.spec
    at = spec.schedule.first(context.now) if spec.schedule is not None else spec.run_at
    if isinstance(submission, CreateJob) and spec.namespace in context.facts.paused:
        return at, f"namespace {spec.namespace} is paused: the job would be created paused"
    if at is None and isinstance(submission, CreateJob):
        return None, "now"
    return at, None


def _without_calendars(event: dict[str, Any]) -> dict[str, Any] | None:
    """Return the event without its schedule's calendars; None if it has none."""
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
            yield printable(f"  {field_text(item)}")
