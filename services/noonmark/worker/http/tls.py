"""Converts the TLS settings of a job for the client library. Certificates of targets are always checked."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from noonmark.core.kinds.http_request import BadRequestError
from noonmark.core.kinds.tls import check_tls

_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def tls_context(spec: Mapping[str, Any]) -> ssl.SSLContext:
    """Return the context of a job's `tls`, its references resolved; equal settings share one.

    Connections are kept apart by context, so a job never uses one that was opened with another's certificate.

    Raises:
        BadRequestError: a text in it is not valid. The message does not contain it.
    """
    check_tls(spec)
    return _context(
        spec.get("ca"),
        spec.get("client_certificate"),
        spec.get("client_key"),
        spec.get("server_name"),
        spec.get("min_version") or "1.2",
    )


@lru_cache(maxsize=256)
def _context(
    ca: str | None, certificate: str | None, key: str | None, server_name: str | None, min_version: str
) -> ssl.SSLContext:
    del server_name  # only part of the cache key
    try:
        context = ssl.create_default_context(cadata=ca)
    except (ssl.SSLError, ValueError):
        raise BadRequestError("tls.ca is not a certificate in PEM") from None
    context.minimum_version = _VERSIONS[min_version]
    if certificate is not None and key is not None:
        _load_identity(context, certificate, key)
    return context


def _load_identity(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Load certificate and key. The library reads them only from files: here one in memory, private to us."""
    file = os.memfd_create("tls", os.MFD_CLOEXEC)
    try:
        os.write(file, f"{certificate}\n{key}\n".encode())
        # Without this, the library would prompt for the password of an encrypted key on the terminal.
        context.load_cert_chain(f"/proc/self/fd/{file}", password=_no_password)
    except (ssl.SSLError, ValueError, OSError):
        raise BadRequestError(
            "tls.client_certificate and tls.client_key are not a certificate and its unencrypted key in PEM"
        ) from None
    finally:
        os.close(file)


def _no_password() -> str:
    raise ValueError("the key is encrypted")
