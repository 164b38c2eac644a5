"""The job document: fields, policies, schedules, the payload of each kind, and requests about existing jobs.

May import: `schemas.problems`, `core`. Start with `documents.py` (what clients write), then `job.py` (what
the store saves).
"""
