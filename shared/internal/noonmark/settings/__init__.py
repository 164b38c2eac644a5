"""Settings of every service, read once from the environment and passed down.

`Settings` is the one class, in `settings.py`; the other modules declare its fields, by service. May import:
`core`. Start with `settings.py`. `python -m noonmark.settings` prints docs/settings.md.
"""

from noonmark.settings.settings import PREFIX, SECRET_PREFIX, Settings, SettingsError

__all__ = ["PREFIX", "SECRET_PREFIX", "Settings", "SettingsError"]
