"""What every service process needs: lifecycle, health endpoints, loops that work on Postgres.

May import: `core`, `store`, `kafka`, `telemetry`, `settings`. Start with `runner.py`.
"""
