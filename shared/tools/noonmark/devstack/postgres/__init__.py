"""A real Postgres from a wheel, or from any other binaries.

May import: `devstack.processes`. Start with `server.py`.
"""
