"""Relays the outbox to Kafka, and measures lag.

May import: `service`, `store`, `kafka`, `telemetry`, `core`, `outbox`. Start with `relay_loop.py`, which
`run_relay.py` and `event_relay.py` complete.
"""
