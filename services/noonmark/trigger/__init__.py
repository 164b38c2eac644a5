"""Everything that happens because time passed: due jobs, due retries, lapsed leases, lost messages.

May import: `service`, `store`, `kafka`, `telemetry`, `core`. Start with `main.py`, which lists the loops;
`claim_loop.py` claims due timers, `sweep_loop.py` has the duties of the leading trigger.
"""
