"""Calendars: named sets of days that schedules exclude or are limited to, and rules on local time with them.

May import: `core` top level and `core.cron`. Start with `calendar.py`.
"""
