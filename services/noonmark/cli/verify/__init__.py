"""`noonmark verify`: check the promises on the ledger of an installation in use, and on its events.

May import: `verify`, `store.verify`, `kafka`, `telemetry`, `cli.connections`, `cli.terminal`. Start with
`commands.py`; `walk.py` goes through the ledger, `event_log.py` collects events.
"""
