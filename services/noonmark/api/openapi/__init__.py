"""The OpenAPI document and the reference page made from it.

May import: `api.http`, `api.requests`. Start with `document.py`.
"""
