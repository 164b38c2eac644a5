"""docs/why.md explains every answer, in the order in which answers are told."""

import re
from pathlib import Path

from noonmark.core.why.answers import Blocker

PAGE = (Path(__file__).parents[2] / "docs" / "why.md").read_text(encoding="utf-8")


def test_every_answer_has_its_row_in_the_order_of_the_vocabulary():
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)

    assert rows == [blocker.value for blocker in Blocker]


def test_every_row_has_cause_and_remedy():
    cells = [line.split("|")[2:4] for line in PAGE.splitlines() if line.startswith("| `")]

    assert all(cell.strip() for row in cells for cell in row)
