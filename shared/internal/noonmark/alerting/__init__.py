"""The channels that deliver alerts to people: a signed webhook, and Alertmanager.

May import: `core`, `schemas`, `settings`. Start with `channels.py`.
"""
