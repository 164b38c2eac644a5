"""The race's program for pgqueuer: `prepare`, `load` or `work`; it runs in an environment of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from datetime import timedelta
from typing import Any, BinaryIO, Final

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

URL: Final = os.environ["RACE_URL"]
BATCH: Final = 500
CALL: Final = 1000
PAYLOAD_BYTES: Final = 256
FLUSH_SECONDS: Final = 0.2


def prepare() -> None:
    """Create the tables, and set their autovacuum as the tool recommends."""
    for arguments in (("install", "--durability", "durable"), ("autovac",)):
        command = [sys.executable, "-m", "pgqueuer", "--pg-dsn", URL, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


async def load() -> None:
    """Create one job per due instant on stdin, many per call."""
    dues = [float(line) for line in sys.stdin]
    connection = await asyncpg.connect(URL)
    queries = Queries(AsyncpgDriver(connection))
    for at in range(0, len(dues), CALL):
        some = dues[at : at + CALL]
        now = time.time()
        await queries.enqueue(
            ["bench"] * len(some),
            [payload(due) for due in some],
            [0] * len(some),
            [timedelta(seconds=due - now) for due in some],
        )
    await connection.close()


def payload(due: float) -> bytes:
    """Write the due instant, and fill up to the size that all have."""
    written = {"due": due, "pad": ""}
    written["pad"] = "x" * (PAYLOAD_BYTES - len(json.dumps(written)))
    return json.dumps(written).encode()


async def work() -> None:
    """Run jobs until SIGTERM."""
    stamps = open_stamps()
    queuer = PgQueuer.from_asyncpg_connection(await asyncpg.connect(URL))

    @queuer.entrypoint("bench")  # type: ignore[untyped-decorator]
    async def handle(job: Any) -> None:
        if stamps is not None:
            stamps.write(struct.pack("<dd", json.loads(job.payload)["due"], time.time()))

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, queuer.shutdown.set)
    await queuer.run(batch_size=BATCH)


def open_stamps() -> BinaryIO | None:
    """Open the file for the instants of the handler, if they are asked for, and flush it regularly."""
    if not (name := os.environ.get("RACE_STAMPS")):
        return None
    stamps = open(f"{name}.{os.getpid()}", "ab")  # noqa: SIM115, PTH123 - open until the process ends

    def flush() -> None:
        while True:
            time.sleep(FLUSH_SECONDS)
            stamps.flush()

    threading.Thread(target=flush, daemon=True).start()
    return stamps


if __name__ == "__main__":
    match sys.argv[1]:
        case "prepare":
            prepare()
        case "load":
            asyncio.run(load())
        case "work":
            uvloop.run(work())
