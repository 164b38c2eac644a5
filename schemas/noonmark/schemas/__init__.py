"""Models of all data that crosses a process boundary: job documents, events, API responses, problems.

May import: `core`. Start with `jobs/documents.py` (the job document) and `events/envelope.py` (CloudEvents on
Kafka).
"""
