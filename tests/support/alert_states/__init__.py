"""States of a real installation, healthy and in trouble, that alert rules are judged on.

Each state is a function that causes its faults and returns what Prometheus would have scraped. `ground.py` has the
servers and processes, `states.py` the list.
"""
