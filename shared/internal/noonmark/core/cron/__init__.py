"""Cron expressions: grammar, fields, and the rule that finds the next match. No time zone is known here.

May import: nothing outside this room. Start with `expression.py`, which parses an expression and searches
its matches.
"""
