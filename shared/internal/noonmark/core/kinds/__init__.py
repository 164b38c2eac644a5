"""What the payload of each kind of job may contain, and how its target's response is judged.

May import: nothing outside this room. Start with `http_request.py`.
"""
