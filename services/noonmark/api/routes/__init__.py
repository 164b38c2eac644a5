"""Routes, one module per resource; jobs and runs have their own sub-packages.

May import: `api.http`, `api.backend`, `api.requests`, `api.openapi`. Start with `namespaces.py`, a typical
resource.
"""
