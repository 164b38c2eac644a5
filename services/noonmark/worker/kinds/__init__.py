"""The kinds of jobs that need little code: scripts and Kafka events; and their database look-ups.

May import: `worker.processes`. Start with `script.py`; the protocol of all kinds is in
`worker.handlers.executors`.
"""
