"""The observer: keeps statistics of each job's outcomes, and raises and resolves alerts.

May import: `service`, `store`, `kafka`, `telemetry`, `alerting`, `core`; Faust only in `faust_app.py` and
`stream.py`. Start with `outcome_store.py` (the stream) and `watch_loop.py` (the alerts).
"""
