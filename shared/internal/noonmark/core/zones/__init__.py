"""Time zones: zone data, and local times as instants, also where they do not exist or occur twice.

May import: `core` top level and `core.calendars`. Start with `zones.py`.
"""
