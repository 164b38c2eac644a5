"""All dashboards, and their files."""

from __future__ import annotations

import json
from typing import Final

from noonmark.telemetry.dashboards.jobs import JOB_DETAIL
from noonmark.telemetry.dashboards.lanes import LANES_AND_LAG
from noonmark.telemetry.dashboards.overview import OVERVIEW
from noonmark.telemetry.dashboards.parts import Dashboard
from noonmark.telemetry.dashboards.workers import WORKERS

DASHBOARDS: Final[tuple[Dashboard, ...]] = (OVERVIEW, LANES_AND_LAG, WORKERS, JOB_DETAIL)


def files() -> dict[str, str]:
    """Return the text of each file by its name."""
    return {f"{one.uid}.json": json.dumps(one.to_json(), indent=2) + "\n" for one in DASHBOARDS}
