"""The API: REST over the same use cases as events and the command line.

May import: `auth`, `service`, `store`, `kafka`, `telemetry`, `schemas`, `core`. Start with `app.py` (all
routes); a request passes `server`, then `requests`, then a module of `routes`.
"""
