"""Prints the public surface of the code as it is; a Postgres is started for the part about the database."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tests.support.public_surface import DATABASE, SECTIONS, encode
from tests.support.public_surface.database import database
from tests.support.public_surface.sources import migrate, start_postgres


def main() -> None:
    """Write the document to stdout."""
    folder = Path(tempfile.mkdtemp(prefix="noonmark-surface-"))
    # Postgres may run as another user.
    folder.chmod(0o711)
    server = start_postgres(folder / "postgres")
    try:
        migrate(server.url)
        surface = {name: describe() for name, describe in SECTIONS.items()}
        surface[DATABASE] = database(server.url)
    finally:
        server.stop()
        shutil.rmtree(folder)
    sys.stdout.write(encode(surface))


if __name__ == "__main__":
    main()
