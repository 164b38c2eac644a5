"""When a job is due: the kinds of schedules, their document and stored forms, and previews.

May import: `core.calendars`, `core.cron`, `core.rrule`, `core.zones`. Start with `schedule.py`, the module
that others import from.
"""
