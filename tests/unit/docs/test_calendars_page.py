"""The documents on docs/calendars.md are read as the page says."""

import json
from datetime import UTC, datetime

import yaml
from tests.unit.docs.pages import DOCS, blocks

from noonmark.core.calendars.calendar import Calendar
from noonmark.core.schedules.documents import parse_schedule

PAGE = DOCS / "calendars.md"


def test_the_calendar_on_the_page_is_one():
    (text,) = blocks(PAGE, "yaml")
    assert Calendar.parse(yaml.safe_load(text)).body() == {
        "dates": ["2026-11-26", "2027-11-25"],
        "ranges": [{"first": "2026-12-24", "last": "2027-01-01"}],
        "weekdays": ["SAT", "SUN"],
        "yearly": ["01-01", "12-25"],
    }


def test_the_schedule_of_the_job_on_the_page_moves_new_year_to_the_next_business_day():
    (text,) = blocks(PAGE, "json")
    calendars = {
        "us-holidays": Calendar.parse({"yearly": ["12-25", "01-01"]}),
        "weekend": Calendar.parse({"weekdays": ["SAT", "SUN"]}),
    }
    schedule = parse_schedule(
        json.loads(text)["schedule"], created_at=datetime(2026, 12, 15, tzinfo=UTC), calendars=calendars
    )
    assert schedule.next(datetime(2026, 12, 15, tzinfo=UTC)) == datetime(2027, 1, 4, 14, tzinfo=UTC)
