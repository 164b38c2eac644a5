"""What a job may say about TLS: PEM texts or references to them, names, versions. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from noonmark.core.kinds.http_request import BadRequestError

MAX_PEM_CHARS: Final = 64 * 1024
MIN_VERSIONS: Final = ("1.2", "1.3")
FIELDS: Final = frozenset({"ca", "client_certificate", "client_key", "server_name", "min_version"})

_REFERENCE: Final = re.compile(r"secret://[^\s]{1,300}")
_NAME: Final = re.compile(
    r"(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*"
)


def check_pem(text: object) -> str:
    """Return a PEM text, or a reference to one. Its content is not quoted.

    Raises:
        BadRequestError: it is neither.
    """
    if not isinstance(text, str) or len(text) > MAX_PEM_CHARS:
        raise BadRequestError(f"is not a text of at most {MAX_PEM_CHARS} characters")
    if _REFERENCE.fullmatch(text) is None and not text.lstrip().startswith("-----BEGIN "):
        raise BadRequestError("is neither secret://NAME nor PEM text, which begins with -----BEGIN")
    return text


def check_server_name(text: object) -> str:
    """Return the name that a certificate must have.

    Raises:
        BadRequestError: it is not a host name.
    """
    if not isinstance(text, str) or _NAME.fullmatch(text.lower()) is None:
        raise BadRequestError("is not a host name")
    return text.lower()


def check_tls(spec: object) -> Mapping[str, Any]:
    """Check the TLS part of a job, its references resolved or not.

    Raises:
        BadRequestError: naming the field.
    """
    if not isinstance(spec, Mapping):
        raise BadRequestError("tls must be an object")
    unknown = sorted(map(str, spec.keys() - FIELDS))
    if unknown:
        raise BadRequestError(
            f"unknown field {', '.join(unknown)} in tls; it has {', '.join(sorted(FIELDS))}"
        )
    for name in ("ca", "client_certificate", "client_key"):
        if spec.get(name) is not None:
            try:
                check_pem(spec[name])
            except BadRequestError as error:
                raise BadRequestError(f"tls.{name} {error.message}") from None
    if spec.get("server_name") is not None:
        check_server_name(spec["server_name"])
    if spec.get("min_version") not in {None, *MIN_VERSIONS}:
        raise BadRequestError("tls.min_version is neither 1.2 nor 1.3")
    if (spec.get("client_certificate") is None) != (spec.get("client_key") is None):
        raise BadRequestError("tls has one of client_certificate and client_key; give both, or neither")
    return spec
