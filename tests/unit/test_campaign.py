"""A campaign continues where it was killed, drops only what a kill tore, and adds up every line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.chaos.campaign import records
from tests.chaos.campaign.__main__ import Plan, campaign, line
from tests.chaos.campaign.records import Record

from noonmark.verify import INVARIANTS

FINDING = {"round": 1, "invariant": "S4", "kind": "second_verdict", "what": "run 7 ended twice"}
TWO_OF_A_KIND = [
    {"round": 2, "invariant": "V7", "kind": "ended", "what": f"worker-{number} hangs"} for number in (4, 5)
]


def record(seed: int, **changed: object) -> Record:
    return {
        "seed": seed,
        "commit": "abc",
        "rounds": 5,
        "kills": 60,
        "kills_by_service": {"worker": 40, "trigger": 20},
        "pauses": 4,
        "faults": {"kill": 60, "pause": 4, "disk full": 1, "clock step": 2},
        "releases": {"0.3.0": 9},
        "planned": 700,
        "runs": 800,
        "restless_rounds": 0,
        "judged_rounds": {"S1": 5, "S4": 4},
        "violated": {"S1": 0, "S4": 0},
        "violations": 0,
        "findings": [],
        **changed,
    }


class Player:
    """Plays seeds without a system, and knows which."""

    def __init__(self, die_at: int = 0) -> None:
        self.seeds: list[int] = []
        self.left: list[float] = []
        self._die_at = die_at

    def __call__(self, seed: int, plan: Plan, minutes: float) -> Record:
        if seed == self._die_at:
            raise KeyboardInterrupt
        self.seeds.append(seed)
        self.left.append(minutes)
        return record(seed, rounds=plan.rounds)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "campaign.jsonl"


def seeds(file: Path) -> list[int]:
    return [found["seed"] for found in records.read(file)]


def test_a_campaign_stops_once_enough_was_killed_or_paused(file: Path) -> None:
    player = Player()
    assert len([*campaign(Plan(file, 129, 0, 5), player)]) == 3
    assert player.seeds == seeds(file) == [1, 2, 3]
    assert player.left == [0.0] * 3


def test_a_killed_campaign_continues_with_the_seeds_that_are_not_in_the_file(file: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        [*campaign(Plan(file, 1000, 0, 5), Player(die_at=3))]
    assert seeds(file) == [1, 2]
    records.append(file, record(4))
    player = Player()
    assert len([*campaign(Plan(file, 64 * 5, 0, 5), player)]) == 2
    assert player.seeds == [3, 5]
    assert [*campaign(Plan(file, 64 * 5, 0, 5), player)] == [], "what is enough stays enough"


def test_a_campaign_begins_no_seed_after_its_time(file: Path) -> None:
    times = iter([0.0, 10.0, 60.0, 120.0])
    player = Player()
    [*campaign(Plan(file, 10_000, 2.0, 5), player, clock=lambda: next(times))]
    assert player.left == [pytest.approx(2 - 1 / 6), pytest.approx(1.0)]


@pytest.mark.parametrize("torn", ['{"seed": 2, "kil', '{"seed": 2}', "\x00\x00"])
def test_a_torn_last_line_is_dropped_and_its_seed_is_played_again(file: Path, torn: str) -> None:
    records.append(file, record(1))
    whole = file.read_text()
    file.write_text(whole + torn)
    assert seeds(file) == [1]
    records.append(file, record(2))
    assert seeds(file) == [1, 2]
    assert file.read_text().startswith(whole)


@pytest.mark.parametrize("bad", ["{", "[]", '{"kills": 3}'])
def test_a_whole_line_that_is_no_record_is_an_error_and_not_dropped(file: Path, bad: str) -> None:
    records.append(file, record(1))
    with file.open("a") as out:
        out.write(bad + "\n" + json.dumps(record(2)) + "\n")
    with pytest.raises(ValueError, match="line 2"):
        records.read(file)


def test_a_file_that_is_not_there_has_no_records(file: Path) -> None:
    assert records.read(file) == []


def test_the_summary_adds_kills_rules_and_shows_every_finding() -> None:
    found = record(
        7,
        violations=3,
        findings=[FINDING, *TWO_OF_A_KIND],
        violated={"S1": 0, "S4": 1},
        commit="def",
        restless_rounds=1,
        releases={"0.2.0": 5, "0.3.0": 4},
    )
    broken = {"seed": 8, "commit": "def", "error": "exit code 2: boom"}
    text = "\n".join(records.summary([found, record(1), record(2), broken]))

    assert text.startswith("4 seeds (1-2, 7-8), 15 rounds, commits abc, def.")
    for row in (
        "| planned instants | 2100 |",
        "| runs | 2400 |",
        "| kills and pauses | 192 |",
        "| killed: trigger | 60 |",
        "| killed: worker | 120 |",
        "| disk full | 3 |",
        "| rounds that did not settle | 1 |",
        "| seeds without a verdict | 1 |",
        "| findings | 3 |",
        "| paused | 12 |",
        "| clock of a process set | 6 |",
        "| clock of Postgres set ahead | 0 |",
        "| killed: broker | 0 |",
        "| 0.2.0 | 5 |",
        "| 0.3.0 | 22 |",
    ):
        assert row in text
    titles = {item.id: item.title for item in INVARIANTS}
    assert f"| S1 {titles['S1']} | 15 | 0 |" in text
    assert f"| S4 {titles['S4']} | 12 | 1 |" in text
    assert f"| V8 {titles['V8']} | 0 | not judged |" in text
    assert "Seed 7, round 1, S4 second_verdict: `run 7 ended twice`" in text
    assert "Seed 7, round 2, V7 ended: 2 findings, such as `worker-4 hangs`" in text
    assert "worker-5" not in text
    assert "two releases ran side by side: 7." in text
    assert "Seed 8 has no verdict: `exit code 2: boom`" in text


def test_a_seed_is_shown_as_clean_violated_or_without_a_verdict() -> None:
    assert line(record(1)).endswith("clean")
    assert line(record(1, violations=2)).endswith("2 VIOLATIONS")
    assert "NO VERDICT: boom" in line({"seed": 1, "error": "boom"})
