"""Routes of jobs; `actions.py` has the parts that they share.

May import: as `api.routes`. Start with `jobs.py`.
"""
