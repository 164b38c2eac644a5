"""Topics whose events need no signature because Kafka's ACLs protect them: `topic=namespace`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from noonmark.core.access.roles import EVERYWHERE
from noonmark.core.access.submission_signature import NAMESPACE
from noonmark.core.kinds.emitted_event import TOPIC


def read_bindings(items: Iterable[str]) -> dict[str, str]:
    """Return the namespace of each topic; `*` for one whose events may act in every namespace.

    Args:
        items: `topic=namespace` or `topic=*`, topics with their full names.

    Raises:
        ValueError: an item cannot be read, or names a topic again.
    """
    bindings: dict[str, str] = {}
    for item in items:
        topic, _, namespace = (part.strip() for part in item.partition("="))
        if not _TOPIC.fullmatch(topic):
            raise ValueError(f"{item!r} has no topic: use topic=namespace, or topic=* for all namespaces")
        if namespace != EVERYWHERE and not _NAMESPACE.fullmatch(namespace):
            raise ValueError(
                f"{item!r} has no namespace: use topic=namespace (1 to 63 of a-z, 0-9, - and _) or topic=*"
            )
        if bindings.setdefault(topic, namespace) != namespace:
            raise ValueError(
                f"topic {topic!r} is bound to {bindings[topic]!r} and to {namespace!r}: choose one"
            )
    return bindings


_TOPIC: Final = re.compile(TOPIC[1:-1])
_NAMESPACE: Final = re.compile(NAMESPACE)
