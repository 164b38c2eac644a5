"""Who is it: API keys and tokens of an OpenID provider become principals (`noonmark.core.access`).

Used by whatever takes requests of others: the API for its callers, the intake for events that are signed.
What a principal may do is decided elsewhere.
"""
