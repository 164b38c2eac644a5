"""Commands about schedules, calendars and time zone data; most need no database.

May import: `cli.terminal`, `cli.connections`. Start with `commands.py`.
"""
