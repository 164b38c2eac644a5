"""The pure domain: states, schedules, policies, signatures. No I/O, and no driver is imported here.

May import: the standard library, `zoneinfo` data and nothing of noonmark outside of `core`. Start with
`states.py` (states, lanes, reasons) and `transitions.py` (which state may follow which). Each room below
is one subject: `schedules` says when a job is due, `planning` what happens to each due instant, `why`
explains why a run has not run.
"""
