"""Postgres: tables, named statements, migrations, and the modules that run them. One room per subject.

May import: `core`, `schemas`, `settings`. Never `kafka`, `telemetry` or a service. Each room keeps its
statements next to its modules, in a folder `sql`; `database/statements.py` finds them by name. Start with
`claims/claims.py` for the way from a due timer to a run, `runs/starts.py` for start and outcome,
`jobs/submit.py` for submissions.
"""
