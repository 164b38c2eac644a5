"""The engine: starts as many runs as can run, high lane first, and records their outcomes.

May import: `worker.lanes`, `worker.leases`, `worker.handlers`. Start with `engine.py`.
"""
