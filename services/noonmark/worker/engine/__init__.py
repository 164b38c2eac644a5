"""The engine: starts as many runs as there are slots, the high lane first, and records their outcomes.

May import: `worker.lanes`, `worker.leases`, `worker.handlers`. Start with `engine.py`; the way of a run is
`starter.py`, `worker.handlers.executors`, `recorder.py`.
"""
