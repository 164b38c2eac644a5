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
    """Serves until a stop is requested, then finishes the requests in flight."""

    name = "http"

    def __init__(
        self, service: Service, app: ASGIApp, parts: ApiContext, authenticator: Authenticator
    ) -> None:
        """Listen immediately, so that a port in use is reported before the service reports that it runs.

        Args:
            service: the service of the process.
            app: the application.
            parts: parts of the application; closed at the end, like the authenticator.
            authenticator: authenticator of the request guard.

        Raises:
            StartError: if the process cannot listen on the address.
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
            # The heartbeat is sent from the server's event loop, so that /livez detects a blocked loop.
            self._progress.beat()
            if stop.is_set() and not self._server.should_exit:
                self._server.should_exit = True
                # Otherwise streams would continue until the drain time of requests in flight is over.
                await asyncio.to_thread(self._parts.end_streams)
            await asyncio.wait([serving], timeout=_BEAT_SECONDS)
        await serving


def server_config(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    """Return the uvicorn configuration of an application."""
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
        # By default, uvicorn trusts clients on this host, and FORWARDED_ALLOW_IPS. Failures are counted by
        # address, and the audit log contains it.
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
            f"cannot listen on {host}, port {port} ({error.strerror or error}): set NOONMARK_API_HOST and "
            f"NOONMARK_API_PORT, or --host and --port, to a free one; 0 takes any"
        ) from error
    return made
