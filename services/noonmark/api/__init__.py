"""The REST API. It shares its use cases with events on Kafka and the command line.

May import: `auth`, `service`, `store`, `kafka`, `telemetry`, `schemas`, `core`. Start with `app.py` (all
routes); a request passes `server`, then `requests`, then a module of `routes`.
"""
