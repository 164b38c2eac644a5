"""The scenario of alerts: rules in a hurry, and the panels that it asks."""

import pytest
from benchmarks.monitoring import RULES, hurried
from benchmarks.monitoring_scenario import EXPECTED, PANELS, panel_queries


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("        for: 5m\n", "        for: 30s\n"),
        ("rate(x[1h])", "rate(x[360s])"),
        ("x offset 15m", "x offset 90s"),
        ("x[5m:30s]", "x[30s:30s]"),
        # Never too short for two scrapes.
        ("        for: 15s\n", "        for: 5s\n"),
        # Names and figures stay.
        (
            "lane:noonmark_start_slo_errors:ratio_rate5m > 300",
            "lane:noonmark_start_slo_errors:ratio_rate5m > 300",
        ),
        ("summary: for a day, 5m long", "summary: for a day, 5m long"),
    ],
)
def test_durations_are_divided_and_nothing_else(text, shorter):
    assert hurried(text, 10) == shorter


def test_without_hurry_the_rules_are_as_they_stand():
    for file in RULES.glob("*.yaml"):
        assert hurried(file.read_text(), 1) == file.read_text()


def test_the_alerts_that_must_fire_and_the_panels_exist():
    text = (RULES / "alerting.yaml").read_text()
    assert all(f"alert: {name}\n" in text for name in EXPECTED)
    asked = list(panel_queries())
    assert len(asked) >= len(PANELS)
    assert not [expr for _, expr in asked if "$" in expr]
