"""Handler modules of a process that ends at each request, before a handler begins."""

from __future__ import annotations

import os
import sys

from noonmark.handlers import handler

child = sys.modules["__main__"]
if hasattr(child, "Worker"):
    child.Worker.next_request = lambda _: os._exit(3)


@handler("never.begins", run="process")
def never_begins(_: object) -> None:
    """Be called never."""
