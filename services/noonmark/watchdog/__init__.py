"""The watchdog: calls an external URL while every part makes progress, and stops when one does not.

May import: `service`, `store`, `kafka`, `telemetry`, `alerting`, `core`. Start with `heartbeat_loop.py`.
"""
