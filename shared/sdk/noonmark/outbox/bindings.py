"""The application outboxes that a dispatcher relays, from the setting `app_outboxes`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

FORM: Final = "name=postgresql://user:password@host:port/database=namespace"

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")


@dataclass(frozen=True, slots=True)
class AppOutbox:
    """One application's outbox.

    Attributes:
        name: part of the identity of every job from it, so it must never change.
        namespace: the only namespace in which its jobs are created.
        url: libpq URL of the application's database; a secret.
    """

    name: str
    namespace: str
    url: str = field(repr=False)


def parse_bindings(text: str) -> tuple[AppOutbox, ...]:
    """Parse the setting: bindings of the form above, with spaces or line breaks between them.

    Raises:
        ValueError: a binding is not valid. The message shows no part of a URL, which may contain a password.
    """
    found: dict[str, AppOutbox] = {}
    if not text.strip():
        return ()
    from noonmark.schemas.jobs.policies import NAMESPACE_PATTERN  # noqa: PLC0415 - few installations have an outbox

    for place, binding in enumerate(text.split(), start=1):
        name, first, rest = binding.partition("=")
        url, last, namespace = rest.rpartition("=")
        if not first or not last or not url.startswith(("postgresql://", "postgres://")):
            raise ValueError(
                f"binding {place} is not valid: use {FORM}, with spaces between several bindings"
            )
        if _NAME.fullmatch(name) is None:
            raise ValueError(
                f"the name of binding {place} is not valid: use 1 to 48 of a-z, 0-9, _ and -, not starting"
                " with _ or -"
            )
        if re.fullmatch(NAMESPACE_PATTERN, namespace) is None:
            raise ValueError(f"binding {name} has no namespace at its end: use {FORM}")
        if name in found:
            raise ValueError(f"two bindings are named {name}: give each application's outbox its own name")
        found[name] = AppOutbox(name, namespace, url)
    return tuple(found.values())
