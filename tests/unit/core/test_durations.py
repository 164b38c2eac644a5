"""One parser reads durations for options, job documents and settings."""

from datetime import UTC, datetime, timedelta

import pytest

from noonmark.cli.terminal.options import as_seconds
from noonmark.core.instants import parse_duration
from noonmark.core.schedules.documents import Context, read_document
from noonmark.settings import Settings

FORMS = {
    "5m": 300, "PT5M": 300, "300": 300, "300s": 300, "6h": 21_600, "1h30m": 5400, "PT1H30M": 5400, "1d": 86_400,
    "2w": 1_209_600, "P2W": 1_209_600, "1d12h": 129_600,
}  # fmt: skip
NO_DURATIONS = ("", "m", "5M", "5 m", "m5", "30m1h", "1.5h", "P", "PT", "P1M", "-5m", "5 minutes", "h1")


@pytest.mark.parametrize(("text", "seconds"), FORMS.items())
def test_each_form_is_read_by_options_documents_and_settings(text, seconds, monkeypatch):
    assert parse_duration(text) == timedelta(seconds=seconds)
    assert as_seconds(text) == seconds
    schedule = read_document({"every": text}, Context(datetime(2026, 1, 1, tzinfo=UTC)))
    assert schedule.every == timedelta(seconds=seconds)
    monkeypatch.setenv("NOONMARK_STUCK_AFTER_SECONDS", text)
    settings, problems = Settings.examine()
    limit = [problem for problem in problems if "STUCK" in problem]
    assert limit or settings.stuck_after_seconds == seconds
    assert all(f"{seconds}" in problem or text in problem for problem in limit)


@pytest.mark.parametrize("text", NO_DURATIONS)
def test_other_texts_are_no_durations(text):
    with pytest.raises(ValueError, match=r"write a duration such as 15m|counts in months"):
        parse_duration(text)
    assert as_seconds(text) is None
