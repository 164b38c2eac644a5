"""API tokens: `nmk_<key id>_<secret>`.

The prefix is fixed, so that scanners of repositories and logs find a leaked token. The id finds the row. Only
a hash of the secret is stored.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import string
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "nmk_"
KEY_ID_LENGTH: Final = 12
SECRET_LENGTH: Final = 43
"""43 of 62 characters have 256 bits."""

_KEY_ID_CHARACTERS: Final = string.ascii_lowercase + string.digits
_SECRET_CHARACTERS: Final = string.ascii_letters + string.digits
_KEY_ID: Final = re.compile(rf"[a-z0-9]{{{KEY_ID_LENGTH}}}")
_TOKEN: Final = re.compile(rf"{PREFIX}({_KEY_ID.pattern})_([A-Za-z0-9]{{{SECRET_LENGTH}}})")


@dataclass(frozen=True, slots=True, repr=False)
class ApiToken:
    """A token in clear text. It exists only while it is created or checked, and is never stored."""

    key_id: str
    secret: str

    def __str__(self) -> str:
        return f"{PREFIX}{self.key_id}_{self.secret}"

    def __repr__(self) -> str:
        return f"ApiToken(key_id={self.key_id!r})"

    @classmethod
    def mint(cls) -> ApiToken:
        """Create a new token."""
        return cls(_drawn(_KEY_ID_CHARACTERS, KEY_ID_LENGTH), _drawn(_SECRET_CHARACTERS, SECRET_LENGTH))

    @classmethod
    def parse(cls, text: str) -> ApiToken | None:
        """Parse a token; return None if the text is not one."""
        found = _TOKEN.fullmatch(text)
        return cls(found[1], found[2]) if found else None

    @property
    def secret_hash(self) -> bytes:
        """The stored hash: SHA-256. For 256 random bits, a slow hash would not be safer."""
        return hashlib.sha256(self.secret.encode()).digest()

    def matches(self, secret_hash: bytes) -> bool:
        """Compare with a stored hash in constant time."""
        return hmac.compare_digest(self.secret_hash, secret_hash)


def is_key_id(text: str) -> bool:
    """Return whether a text has the form of a key id."""
    return _KEY_ID.fullmatch(text) is not None


def new_signing_secret() -> bytes:
    """Create the secret that a publisher signs its events with: 32 random bytes."""
    return secrets.token_bytes(32)


def _drawn(characters: str, length: int) -> str:
    return "".join(secrets.choice(characters) for _ in range(length))
