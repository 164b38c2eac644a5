"""Characters that are not seen, or that change the direction of text: a name with them looks like another."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

INVISIBLE: Final = re.compile(
    "[\u0080-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\U000e0001-\U000e007f]"
)


def invisible_character(text: str) -> str:
    """Return which invisible character a text contains, and where, as a clause; empty if it has none."""
    found = INVISIBLE.search(text)
    if found is None:
        return ""
    name = unicodedata.name(found[0], "")
    return (
        f"contains the invisible character U+{ord(found[0]):04X}{f' ({name})' if name else ''}"
        f" as character {found.start() + 1}"
    )
