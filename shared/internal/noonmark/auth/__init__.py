"""Authentication: API keys and tokens of an OpenID provider become principals.

May import: `core`, `store`, `settings`. Start with `authenticator.py`.
"""
