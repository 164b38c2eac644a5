"""Alert rules on what real services show, well and in trouble: what is recorded is kept for the tests of the chart.

It needs a quiet machine: on another, an alert about slow services may be right. So it runs only on request. All states
take about half an hour, and each of them at most seven minutes; record some of them by name:

NOONMARK_TEST_RECORD=1 python -m pytest tests/acceptance/test_alert_recordings.py
NOONMARK_TEST_RECORD=1 python -m pytest tests/acceptance/test_alert_recordings.py -k "postgres or kafka"
"""

import os
from pathlib import Path

import pytest
from tests.chart.alert_rules import RECORDED, RECORDINGS, rule_groups
from tests.support.alert_states.ground import Ground
from tests.support.alert_states.states import STATES
from tests.support.deploy_tools import tool
from tests.support.recordings import judge
from tests.support.stack import Kafka


@pytest.mark.slow
@pytest.mark.skipif(
    not os.environ.get("NOONMARK_TEST_RECORD"), reason="records on request (NOONMARK_TEST_RECORD=1)"
)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("state", STATES)
def test_alerts_of_a_state_fire_on_what_the_services_show_and_no_others(
    state: str, database_url: str, kafka_server: Kafka, server_dir: Path, tmp_path: Path
) -> None:
    promtool, servers = tool("promtool"), server_dir / state
    servers.mkdir()
    servers.chmod(0o711)
    ground = Ground(database_url, kafka_server.bootstrap, tmp_path, servers)
    with ground.stack:
        text = STATES[state](ground).text()
    # Written before it is judged: with a wrong one, `git diff` shows what is different.
    (RECORDINGS / f"{state}.series").write_text(text, encoding="utf-8")
    assert judge(promtool, rule_groups(), text, RECORDED[state], tmp_path) == ""
