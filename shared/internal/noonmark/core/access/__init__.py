"""Access control: roles and permissions, and signatures of submissions and webhooks.

May import: `core.kinds`. Start with `roles.py`.
"""
