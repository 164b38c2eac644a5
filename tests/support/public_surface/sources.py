"""Everything that the surface needs from inside noonmark: when a module moves, this is the one place to change.

The rest is found by public routes: the five packages that users import, the console script, the documents in
`schemas/json`, the values of the chart, the project file.
"""

from __future__ import annotations

from noonmark.cli.terminal.problems import ExitCode
from noonmark.core.states import Lane
from noonmark.devstack.postgres.server import start_postgres
from noonmark.kafka.topics import Topics
from noonmark.schemas.problems.types import PROBLEM_TYPES
from noonmark.settings import PREFIX, Settings
from noonmark.store.migrations.migrate import migrate
from noonmark.telemetry.metrics import REGISTRY

__all__ = [
    "PREFIX",
    "PROBLEM_TYPES",
    "REGISTRY",
    "ExitCode",
    "Lane",
    "Settings",
    "Topics",
    "migrate",
    "start_postgres",
]
