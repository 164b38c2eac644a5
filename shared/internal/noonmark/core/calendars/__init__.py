"""Calendars: named sets of days that schedules leave out or keep to, and rules on local time under them.

May import: `core` top level and `core.cron`. Start with `calendar.py`.
"""
