"""The page about capacity shows what the model says about the kept report."""

from benchmarks.fleet.__main__ import KEPT, PAGE, PART, lines, simulated
from benchmarks.fleet.measured import read_measured
from benchmarks.fleet.sizing import Assumptions
from tests.support.marked import read_part


def test_the_page_shows_what_the_command_prints() -> None:
    measured, given = read_measured(KEPT), Assumptions()
    shown = "\n".join(lines(measured, simulated(measured, "all", given), given))
    assert read_part(PAGE, PART) == shown, "python -m benchmarks.fleet --write"
