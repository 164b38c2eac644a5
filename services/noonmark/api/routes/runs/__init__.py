"""Routes about runs and dead letters. Every path is also available as `/executions`.

May import: as `api.routes`. Start with `runs.py`.
"""
