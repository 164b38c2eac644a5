"""Connections of commands: contexts, the API over HTTP or in process, the database.

May import: `cli.terminal`. Start with `api.py`.
"""
