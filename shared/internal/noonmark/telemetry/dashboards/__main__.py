"""Writes the dashboards to a folder."""

from __future__ import annotations

import sys
from pathlib import Path

from noonmark.telemetry.dashboards.files import files


def main() -> None:
    """Write every file."""
    folder = Path(sys.argv[1])
    for name, text in files().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
