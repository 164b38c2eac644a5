"""Stored jobs: the document of a job, the columns it becomes, and schedules read from their stored text.

May import: `core` and `schemas` only. Start with `jobs.py`.
"""
