"""Schedules in plain English: what `noonmark schedule explain` prints.

May import: every room of `core` about schedules. Start with `schedule.py`.
"""
