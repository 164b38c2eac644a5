"""The page about verification shows what the file of the recorded campaigns says."""

from tests.chaos.campaign import records
from tests.chaos.campaign.__main__ import PAGE, PART, RECORDED
from tests.support.marked import read_part


def test_the_page_shows_the_recorded_campaigns() -> None:
    played = records.read(RECORDED)
    assert played
    shown = "\n".join(records.summary(played)).strip("\n")
    assert read_part(PAGE, PART) == shown, "python -m tests.chaos.campaign --summary --write"
