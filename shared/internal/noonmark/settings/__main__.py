"""Prints docs/settings.md."""

import sys

from noonmark.settings.page import page

sys.stdout.write(page())
