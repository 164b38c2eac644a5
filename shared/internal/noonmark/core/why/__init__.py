"""Why a job or a run has not run: the facts that are gathered, and the ordered answers that they give.

May import: `core` top level, `core.planning`, `core.workflows`. Start with `jobs.py` (`explain`); `facts.py`
lists what must be known.
"""
