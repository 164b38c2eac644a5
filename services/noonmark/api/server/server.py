"""The HTTP server as a loop of the service."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from noonmark.api.backend.context import ApiContext
from noonmark.api.server.protocol import BoundedProtocol
from noonmark.auth.authenticator import Authenticator
from noonmark.service.runner import Service, StartError
from noonmark.settings import Settings

_BEAT_SECONDS: Final = 0.25
_BACKLOG: Final = 2048


class ServeLoop:
    """Serves until told to stop, then lets requests in hand end."""

    name = "http"

    def __init__(
        self, service: Service, app: ASGIApp, parts: ApiContext, authenticator: Authenticator
    ) -> None:
        """Listen at once, so that a taken port is told before the service says that it runs.

        Args:
            service: the process.
            app: what is served.
            parts: of the application; closed at the end, as is the authenticator.
            authenticator: of the application's gate.

        Raises:
            StartError: the address cannot be listened on.
        """
        self._service = service
        self._parts = parts
        self._authenticator = authenticator
        self._progress = service.health.progress(self.name, 15.0)
        self._socket = _listen(service.settings.api_host, service.settings.api_port)
        service.log.info("api_listening", host=service.settings.api_host, port=self._socket.getsockname()[1])
        self._server = uvicorn.Server(server_config(app, service.settings))

    def run(self, stop: threading.Event) -> None:
        """Serve until `stop` is set."""
        try:
            with asyncio.Runner(loop_factory=self._server.config.get_loop_factory()) as runner:
                runner.run(self._serve(stop))
        finally:
            self._parts.close()
            self._authenticator.close()
            self._socket.close()

    async def _serve(self, stop: threading.Event) -> None:
        serving = asyncio.ensure_future(self._server.serve(sockets=[self._socket]))
        while not serving.done():
            # The beat comes from the server's own loop: one that is blocked shows in /livez.
            self._progress.beat()
            if stop.is_set() and not self._server.should_exit:
                self._server.should_exit = True
                # Streams would otherwise go on until the time for requests in hand is up.
                await asyncio.to_thread(self._parts.live.close)
            await asyncio.wait([serving], timeout=_BEAT_SECONDS)
        await serving


def server_config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    """Return how an application is served."""
    proxies = list(settings.api_trusted_proxies)
    return uvicorn.Config(
        app,
        loop="uvloop",
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=True,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(settings.drain_seconds),
        # The library believes whoever connects from this host, and FORWARDED_ALLOW_IPS. Addresses are what
        # failures are counted by, and stand in the audit log.
        proxy_headers=bool(proxies),
        forwarded_allow_ips=proxies,
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        raise StartError(
            f"cannot listen on {host}, port {port} ({error.strerror or error}): set NOONMARK_API_HOST and"
            " NOONMARK_API_PORT, or --host and --port, to a free one; 0 takes any"
        ) from error
    return made
