"""Which service needs which rights in Postgres: the only list of them.

`docs/rights.md`, `noonmark rights postgres` and the grants of `noonmark db migrate` are made from it. A test
compares it with the SQL that the code of each service reaches.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ALL_SERVICES_ROLE", "FUNCTION_RIGHTS", "SERVICES", "TABLES", "role_of", "table_rights"]

ALL_SERVICES_ROLE: Final = "noonmark_services"
"""A role that the roles of all services are members of: row-level security lets it see every row."""

_VERBS: Final = {"s": "select", "i": "insert", "u": "update", "d": "delete"}

# One letter a right. `api` is what the API does outside the scope of a caller; within it, it acts as
# `noonmark_api`.
_TABLE_RIGHTS: Final = """
table              intake     trigger    dispatcher worker     observer   watchdog   api
alembic_version    s          s          s          s          s          -          s
alert_deliveries   -          sd         -          -          siu        -          -
alerts             -          sd         -          -          siu        -          -
api_keys           su         -          -          -          -          -          su
attempt_logs       -          -          -          siu        -          -          -
attempts           si         si         si         si         -          -          -
audit_log          i          sd         -          -          -          -          -
backfills          -          sud        -          -          -          -          -
buckets            -          siud       -          -          -          -          -
calendar_contents  s          s          s          -          -          -          s
calendars          s          s          s          -          -          -          s
callbacks          sud        sud        sud        siud       s          -          -
dead_letters       si         si         si         si         s          -          -
idempotency        -          sd         -          -          -          -          -
inbox              sid        sid        sid        -          -          -          -
install            s          su         s          s          s          s          s
job_labels         sid        sid        sid        -          -          -          -
job_stats          -          -          -          -          siud       -          -
job_versions       si         si         si         s          -          -          -
jobs               siu        siu        siu        su         s          -          -
late_rules         sid        sid        sid        -          s          -          -
late_runs          -          -          -          -          sid        -          -
lease_watch        -          siu        -          -          -          -          -
limit_slots        sd         siud       sd         sud        -          -          -
limits             s          su         s          -          -          -          s
members            s          siud       siud       -          siud       -          -
namespaces         su         su         su         -          -          -          s
observer_events    -          -          -          -          sid        -          -
observer_offsets   -          -          -          -          siud       -          -
observer_state     -          -          -          -          siu        -          -
outbox             sid        sid        siud       sid        si         s          -
outcome_windows    -          -          -          -          -          -          -
pool_keys          -          -          s          s          -          -          -
pools              s          s          s          -          -          -          -
process_progress   -          siud       siud       -          siud       siu        -
rejections         si         sd         -          si         -          -          -
run_notes          -          -          -          siu        -          -          -
runs               siu        siu        siu        su         s          -          -
signing_keys       -          -          -          si         -          -          -
slots              sid        siud       sid        sud        -          -          -
start_batches      sud        sud        sud        siud       s          -          -
timers             siud       siud       siud       siud       s          s          -
tombstones         siu        siud       siu        -          -          -          -
topic_progress     -          s          siu        -          -          -          -
waits              siud       siud       siud       siu        -          -          -
workers            s          sud        s          siu        s          -          -
workflow_tasks     si         si         si         s          -          -          -
workflows          s          siud       s          -          s          -          -
zone_data          s          s          s          -          -          -          -
"""

_HEAD, *_ROWS = (line.split() for line in _TABLE_RIGHTS.strip().splitlines())
_BY_TABLE: Final = {table: dict(zip(_HEAD[1:], cells, strict=True)) for table, *cells in _ROWS}

SERVICES: Final = tuple(_HEAD[1:])
"""The services that have a role."""

TABLES: Final = tuple(_BY_TABLE)
"""Every table, sorted."""

FUNCTION_RIGHTS: Final = {
    "intake": ("noonmark_make_day(date)",),
    "trigger": ("noonmark_make_day(date)", "noonmark_drop_day(text, integer)"),
    "dispatcher": ("noonmark_make_day(date)",),
}
"""Functions that act as the owner of the tables, by service; others are for everyone."""


def role_of(service: str) -> str:
    """Return the name of a service's role; users that the service logs in as are members of it."""
    return f"noonmark_{service}_service"


def table_rights(service: str, table: str) -> tuple[str, ...]:
    """Return select, insert, update and delete, as far as the service needs them on the table."""
    return tuple(_VERBS[letter] for letter in _BY_TABLE[table][service] if letter in _VERBS)
