"""Errors about invalid input: problem types, refusals with JSON pointers, translation of pydantic's errors.

May import: `core`. Start with `refusal.py`.
"""
