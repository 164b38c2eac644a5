"""One attempt of a run, from start to outcome: context, effects, secrets, redaction.

The worker and `noonmark.testing` share this code, so that tests of handlers run what production runs.

May import: `core`, `handlers`, `store`, `kafka`, `telemetry`, `service`. Start with `running_attempt.py`,
then `outcomes.py`.
"""
