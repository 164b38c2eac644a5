"""Relays the outbox to Kafka, and measures how far everybody is behind."""
