"""The rules as an operator tests them: every file of cases against the whole of the rules, as it stands."""

import subprocess
from pathlib import Path

from tests.support.deploy_tools import tool

CASES = sorted((Path(__file__).parents[1] / "chart" / "promtool").glob("*.yaml"))


def test_every_case_holds_with_all_rules_together():
    command = [tool("promtool"), "test", "rules", *CASES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("SUCCESS") == len(CASES)
