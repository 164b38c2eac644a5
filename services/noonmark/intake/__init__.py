"""Ingests submissions from Kafka into the database: in batches, once each, or rejected with a reason.

May import: `service`, `store`, `kafka`, `telemetry`, `auth`, `schemas`, `core`. Start with `read_loop.py` and
`write_loop.py`; `authorization.py` decides who may submit.
"""
