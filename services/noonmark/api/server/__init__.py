"""The HTTP server, and the guard that authenticates and limits each request before any route.

May import: every other room of `api`. Start with `server.py`, then `gate.py`.
"""
