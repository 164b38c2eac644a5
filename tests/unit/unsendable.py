"""HTTP requests that no worker sends: the intake must refuse each, and so must the worker."""

from __future__ import annotations

from typing import Any

_NUMBER = "four decimal numbers"
_URLS: dict[str, str] = {
    "http://2130706433/": _NUMBER,
    "http://0x7f000001/": _NUMBER,
    "http://127.1/": _NUMBER,
    "http://0177.0.0.1/": _NUMBER,
    "http://127.0.0.1./": _NUMBER,
    "http://256.1.1.1/": _NUMBER,
    "http://1.2.3.4.5/": _NUMBER,
    "http://foo.1/": _NUMBER,
    "http://[fe80::1%25lo]/": "without a zone id",
    "http://[127.0.0.1]/": "an IPv6 address",
    "http://[]/": "an IPv6 address",
    "http://[::1]x/": "host:port",
    "http://example.com:0/": "a port from 1 to 65535",
    "http://example.com:65536/": "a port from 1 to 65535",
    "http://example.com:/": "host:port",
    "http://example.com:80:80/": "host:port",
    "http://::1/": "host:port",
    "http://a..b/": "joined by dots",
    "http://-a.com/": "joined by dots",
    "http://%6cocalhost/": "joined by dots",
    f"http://{'a' * 64}.com/": "at most 63 letters",
    "http://metadata.google.internal/": "another host",
    "http://user@example.com/": "in a header",
    "ftp://example.com/": "http or https",
}
_OURS = (
    *("User-Agent", "Idempotency-Key", "Noonmark-Fence", "noonmark-x", "Webhook-Id", "webhook-signature"),
    *("Host", "Content-Length", "Transfer-Encoding", "Expect", "TE", "Proxy-Authorization", "proxy-x"),
)
_VALUES = ("caf\u00e9", "\u20ac", "\u0080", "a\nb", "a\x0bb", "\x7f", "x" * 8193)

UNSENDABLE: list[tuple[dict[str, Any], str, str]] = [
    *(({"url": url}, "url", words) for url, words in _URLS.items()),
    *(({"headers": {name: "x"}}, "headers", "a header that neither frames") for name in _OURS),
    *(({"headers": {"X-A": value}}, "headers/X-A", "printable ASCII") for value in _VALUES),
    *(
        ({"headers": {name: "x"}}, f"headers/{name}", "names are tokens")
        for name in ("", "a b", "\u00e9", "n" * 201)
    ),
    ({"headers": {"x-a": "1", "X-A": "2"}}, "headers", "differ in more than case"),
    ({"headers": {f"x-{n}": "" for n in range(51)}}, "headers", "at most 50 headers"),
    ({"headers": {f"x-{n}": "v" * 6000 for n in range(3)}}, "headers", "16384 bytes together"),
    ({"method": "TRACE"}, "method", "one of GET"),
    ({"method": "CONNECT"}, "method", "one of GET"),
]
"""Fields of the payload, the pointer inside it, and words of what would be right."""
