"""Executors of Python handlers: on threads, on event loops, in child processes, in a transaction.

May import: `worker.processes`, `worker.kinds`. Start with `executors.py`.
"""
