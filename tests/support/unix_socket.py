"""A Unix socket that leads to a server that listens on TCP only, as the Postgres of the tests does."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def unix_socket(port: int) -> Iterator[str]:
    """Yield the folder of a socket that libpq finds under the number of this port."""
    folder = tempfile.mkdtemp(prefix="nm")  # short: the path of a socket has at most 107 characters
    loop, stop, opened = asyncio.new_event_loop(), asyncio.Event(), threading.Event()

    async def serve() -> None:
        async with await asyncio.start_unix_server(connected, f"{folder}/.s.PGSQL.{port}"):
            opened.set()
            await stop.wait()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_pump(reader, server_writer), _pump(server_reader, writer))

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert opened.wait(10), "the socket was not opened"
    yield folder
    loop.call_soon_threadsafe(stop.set)
    thread.join(10)
    loop.close()
    shutil.rmtree(folder)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
