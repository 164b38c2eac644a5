"""docs/glossary.md explains the words that people meet in output, metrics and messages."""

import re
from pathlib import Path

import pytest

from noonmark.core.calendars.calendar import OnHoliday
from noonmark.core.planning.plan import MisfirePolicy
from noonmark.core.states import (
    AttemptOutcome,
    BackfillMode,
    BackfillState,
    DstGap,
    DstOverlap,
    JobState,
    Lane,
    Origin,
    Overlap,
    ResumeChoice,
    RunState,
    SkipReason,
    TimerKind,
    WaitReason,
)

DOCS = Path(__file__).parents[2] / "docs"
GLOSSARY = (DOCS / "glossary.md").read_text()
STATES = (DOCS / "state-machine.md").read_text()
ENTRIES = re.findall(r"^\*\*([^*]+)\.\*\*", GLOSSARY, re.MULTILINE)


@pytest.mark.parametrize(
    "words",
    [
        AttemptOutcome,
        BackfillMode,
        JobState,
        MisfirePolicy,
        Origin,
        Overlap,
        ResumeChoice,
        RunState,
        SkipReason,
        WaitReason,
    ],
    ids=lambda words: words.__name__,
)
def test_every_word_of_the_domain_is_explained(words):
    both = GLOSSARY + STATES

    assert [word.value for word in words if f"`{word.value}`" not in both] == []


@pytest.mark.parametrize(
    ("words", "page"),
    [
        (DstGap, "schedules.md"),
        (DstOverlap, "schedules.md"),
        (MisfirePolicy, "schedules.md"),
        (OnHoliday, "calendars.md"),
        (BackfillMode, "backfill.md"),
        (BackfillState, "backfill.md"),
        (ResumeChoice, "events.md"),
    ],
    ids=lambda given: given if isinstance(given, str) else given.__name__,
)
def test_every_choice_of_users_is_explained_on_its_page(words, page):
    text = (DOCS / page).read_text()

    assert [word.value for word in words if f"`{word.value}`" not in text] == []


def test_lanes_and_kinds_of_timers_are_explained():
    assert [lane.label for lane in Lane if f"`{lane.label}`" not in GLOSSARY] == []
    assert [kind.name.lower() for kind in TimerKind if kind.name.lower() not in GLOSSARY] == []


def test_the_words_of_the_design_have_an_entry_each():
    wanted = (
        "Job, Schedule, Run, Attempt, Fence, Lane, Pool, Lease, Outbox, Relay, Misfire, Lost, Dead letter, Verdict, Epoch,"
        " Slot, Zone, Zone data, Calendar, Jitter, Pause, Resume choice, Look-back, Backfill, Namespace"
    )

    assert set(wanted.split(", ")) - set(ENTRIES) == {"Slot"}
    assert GLOSSARY.count("**Slot** (of a ") == 2
    assert "**Heartbeat** (beat)" in GLOSSARY


def test_no_entry_stands_twice():
    assert len(ENTRIES) == len(set(ENTRIES))


def test_pages_of_states_and_words_use_no_state_that_does_not_exist():
    states = {*RunState, *JobState, *AttemptOutcome, *SkipReason, *WaitReason}
    known = {state.value for state in states}
    cells = re.findall(r"^\| `(\w+)` \|", STATES, re.MULTILINE)

    assert {cell for cell in cells if cell not in known} <= {"attempt", "losses", "fence"}
