"""The observer: what is usual for each job, and alerts about what is not.

May import: `service`, `store`, `kafka`, `telemetry`, `alerting`, `core`; Faust only in `faust_app.py` and
`stream.py`. Start with `outcome_store.py` (the stream) and `watch_loop.py` (the alerts).
"""
