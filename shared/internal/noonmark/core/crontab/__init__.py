"""Crontab files as cron reads them, with a second evaluation to check imports.

May import: nothing outside this room; it shares no code with `core.cron`, so that it can check it. Start
with `reader.py`.
"""
