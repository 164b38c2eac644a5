"""Metrics, logs and the health endpoints of every service."""
