"""What schedules depend on in the database: its time, calendars, time zone data, and the lock on changes.

May import: `store.documents`, `store.database`. Start with `time_facts.py`.
"""
