"""The intake: writes each submission from Kafka to the database once, in batches, or rejects it with reason.

May import: `service`, `store`, `kafka`, `telemetry`, `auth`, `schemas`, `core`. Start with `read_loop.py` and
`write_loop.py`; `authorization.py` decides who may submit.
"""
