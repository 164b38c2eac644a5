"""Prints the OpenAPI document: `python -m noonmark.api.export_openapi > schemas/json/openapi.json`."""

from __future__ import annotations

import sys

from noonmark.api.app import build_api
from noonmark.api.openapi.document import document, encode

if __name__ == "__main__":
    sys.stdout.buffer.write(encode(document(build_api())))
