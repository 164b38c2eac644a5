"""Everything that crosses a process boundary, as pydantic models.

May import: `core`. Start with `jobs/documents.py` (the job document) and `events/envelope.py` (CloudEvents on
Kafka).
"""
