"""The OpenAPI document, and the reference page that is generated from it.

May import: `api.http`, `api.requests`. Start with `document.py`.
"""
