"""What happens to each due instant, and which waiting runs are promoted.

May import: `core.schedules` and everything below it. Start with `plan.py`; `promotion.py` decides about
limits and slots.
"""
