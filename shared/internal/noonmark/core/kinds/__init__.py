"""What the payload of each kind of job may hold, and what an answer of its target means.

May import: nothing outside of this room. Start with `http_request.py`.
"""
