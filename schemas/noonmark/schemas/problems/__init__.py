"""How bad input is answered: problem types, refusals with JSON pointers, and pydantic's errors in our words.

May import: `core`. Start with `refusal.py`.
"""
