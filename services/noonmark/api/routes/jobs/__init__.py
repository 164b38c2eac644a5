"""Routes about jobs, and what they share (`actions.py`).

May import: as `api.routes`. Start with `jobs.py`.
"""
