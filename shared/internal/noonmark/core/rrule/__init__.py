"""RFC 5545 recurrence sets on local time, before any time zone is applied.

May import: nothing outside this room. Start with `recurrence_set.py`.
"""
