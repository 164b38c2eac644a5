"""Workflows: the graph of a job's tasks, and what follows from the verdicts of their runs. Pure code.

May import: `core.kinds`, `core.states`, `core.transitions`. Start with `definition.py` (the compiled graph),
then `rules.py` (when a task runs) and `advancing.py` (what follows when tasks end). `compile.py` makes the
graph from the tasks of a document.
"""

from __future__ import annotations

from typing import Final

KEY_PATTERN: Final = r"^[a-z][a-z0-9_-]{0,62}$"
"""The names of tasks: stable, because runs, redrives and history identify a task by its key."""

WORKFLOW_POOL: Final = "$workflow"
"""Pool of the runs of workflows. Triggers handle them; no worker and no document can have this pool."""
