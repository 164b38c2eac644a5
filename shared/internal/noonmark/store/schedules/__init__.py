"""What schedules depend on in the database: calendars, time zone data, and the lock on changes of both.

May import: `store.documents`, `store.database`. Start with `time_facts.py`.
"""
