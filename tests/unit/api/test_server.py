"""How the application is served."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from noonmark.api.server.server import server_config
from noonmark.settings import Settings


def caller_of(settings: Settings, peer: str, forwarded: str) -> str:
    """Whom the application takes for its caller."""
    seen: list[str] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope["client"][0])

    config = server_config(app, settings)
    config.load()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "client": (peer, 1),
        "headers": [(b"x-forwarded-for", forwarded.encode())],
    }
    asyncio.run(config.loaded_app(scope, None, None))
    return seen[0]


def test_nobody_says_where_a_request_comes_from_but_proxies_that_are_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    plain = Settings.load()
    assert caller_of(plain, "127.0.0.1", "203.0.113.9") == "127.0.0.1"
    monkeypatch.setenv("NOONMARK_API_TRUSTED_PROXIES", "10.1.0.0/16")
    behind = Settings.load()
    assert caller_of(behind, "10.1.2.3", "198.51.100.7, 203.0.113.9") == "203.0.113.9"
    assert caller_of(behind, "127.0.0.1", "203.0.113.9") == "127.0.0.1"
