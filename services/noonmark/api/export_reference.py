"""Prints docs/api-reference.md: `python -m noonmark.api.export_reference > docs/api-reference.md`."""

from __future__ import annotations

import sys

from noonmark.api.app import build_api
from noonmark.api.openapi.document import document
from noonmark.api.openapi.reference import page

if __name__ == "__main__":
    sys.stdout.write(page(document(build_api())))
