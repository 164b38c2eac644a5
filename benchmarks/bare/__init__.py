"""The bare design: noonmark's pipeline without what makes it a product, as a yardstick for its speed.

Timers, runs, an outbox, a broker, and a worker that writes `running` and the outcome. It has no fences,
limits, signatures, lifecycle events or housekeeping. It shows what Postgres, Kafka and Python cost at least
for a pipeline of this shape.

May import: `benchmarks`, `noonmark.kafka`, `noonmark.core.ids`. Start with `measure.py`.
"""
