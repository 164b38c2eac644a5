"""Settings of every service, read once from the environment and passed down.

`Settings` in `settings.py` is the only class that you build. Its bases declare the fields, in one module per
service (`worker.py`, `intake.py`, …). May import: `core`. Start with `settings.py`.
`python -m noonmark.settings` prints docs/settings.md.
"""

from noonmark.settings.settings import PREFIX, SECRET_PREFIX, Settings, SettingsError

__all__ = ["PREFIX", "SECRET_PREFIX", "Settings", "SettingsError"]
