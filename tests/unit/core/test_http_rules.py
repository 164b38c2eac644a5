"""What the request of an HTTP job may look like: every way to write a forbidden place."""

import pytest

from noonmark.core.kinds.http_request import BadRequestError, check_headers, parse_url


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("http://example.com", ("http", "example.com", 80, "/", "", False)),
        ("HTTPS://Example.COM:8443/a?b=c#d", ("https", "example.com", 8443, "/a", "b=c", False)),
        ("http://example.com?q", ("http", "example.com", 80, "/", "q", False)),
        ("http://example.com./", ("http", "example.com.", 80, "/", "", False)),
        ("http://a_b.local/", ("http", "a_b.local", 80, "/", "", False)),
        ("http://xn--bcher-kva.example/", ("http", "xn--bcher-kva.example", 80, "/", "", False)),
        ("http://93.184.216.34/", ("http", "93.184.216.34", 80, "/", "", True)),
        ("http://[2606:4700::0001]:443/", ("http", "2606:4700::1", 443, "/", "", True)),
        ("http://e.com/a%2Fb/%e4?x=%20&y=a@b:c", ("http", "e.com", 80, "/a%2Fb/%e4", "x=%20&y=a@b:c", False)),
        ("http://e.com/ü?ß", ("http", "e.com", 80, "/%C3%BC", "%C3%9F", False)),
        ("http://e.com/#@127.0.0.1", ("http", "e.com", 80, "/", "", False)),
        ("http://e.com/[x]|^{}", ("http", "e.com", 80, "/[x]|^{}", "", False)),
    ],
)
def test_plain_urls_are_taken_apart(url, parts):
    target = parse_url(url)
    assert (target.scheme, target.host, target.port, target.path, target.query, target.is_address) == parts


NUMBER_FORMS = (
    *("2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.1", "127.0.1", "0", "0x", "017700000001"),
    *(
        "127.0.0.1.",
        "127.0.0.01",
        "1.2.3",
        "1.2.3.4.5",
        "256.1.1.1",
        "1.2.3.0x4",
        "foo.1",
        "0X7F.1",
        "127.0.0.0x1",
    ),
)


@pytest.mark.parametrize("host", NUMBER_FORMS)
def test_number_forms_of_addresses_are_refused(host):
    with pytest.raises(BadRequestError, match="number form"):
        parse_url(f"http://{host}/")


@pytest.mark.parametrize(
    "url",
    [
        "", "example.com", "//example.com", "/path", "http:/example.com", "http:example.com", "http://",
        "ftp://example.com", "file:///etc/passwd", "gopher://example.com", "javascript:alert(1)",
        "http+unix://x", "ws://example.com", " http://example.com", "http://example.com ",
        "http://user@example.com", "http://user:secret@example.com", "http://example.com@127.0.0.1/",
        "http://@example.com", "http://example.com:80@127.0.0.1/", "http://:80/", "http://?x", "http://#x",
        "http://example.com:/", "http://example.com:0/", "http://example.com:65536/",
        "http://example.com:99999/", "http://example.com:8o/", "http://example.com:-1/",
        "http://example.com:80:80/", "http://example.com:٨٠/", "http://exa\tmple.com", "http://e.com/a b",
        "http://e.com/\r\nHost: x", "http://e.com/\0", "http://e.com\\@127.0.0.1/", "http://e.com/\x7f",
        "http://e.com/\u2028", "http://e.com/\x85", "http:\\\\e.com", "http://127%2e0%2e0%2e1/",
        "http://%6cocalhost/", "http://①②⑦.⓪.⓪.①/", "http://\uff11\uff12\uff17.0.0.1/", "http://ⓔxample.com/",
        "http://127。0。0。1/", "http://bücher.example/", "http://exa\u00admple.com/", "http://a..b/",
        "http://.a/", "http://-a.com/", "http://a-.com/", f"http://{'a' * 64}.com/", f"http://{'a.' * 127}com/",
        "http://[::1", "http://::1/", "http://[::1]x/", "http://[]/", "http://[127.0.0.1]/",
        "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[v1.a]/", "http://[::1]]/", "http://*/",
        "http://a,b/", "http://a;b/", "http://metadata.google.internal/", "http://METADATA.goog./x",
        "http://e.com/" + "a" * 8192, None, 7, b"http://e.com",
    ],
    ids=repr,
)  # fmt: skip
def test_urls_that_could_be_read_in_two_ways_are_refused(url):
    with pytest.raises(BadRequestError):
        parse_url(url)


def test_a_refused_url_never_shows_the_password_in_it():
    with pytest.raises(BadRequestError) as error:
        parse_url("http://user:hunter2@example.com/")
    assert "hunter2" not in str(error.value)


def test_an_ipv6_host_is_written_with_brackets_in_a_url_and_without_elsewhere():
    target = parse_url("http://[2001:DB8::1]:8080/")
    assert (target.host, target.url_host) == ("2001:db8::1", "[2001:db8::1]")
    assert parse_url("http://192.0.2.1/").url_host == "192.0.2.1"


def test_headers_at_the_limits_are_taken():
    headers = {"a" * 200: "x" * 8000, "b": "\t ~" * 2600, "C": ""}
    assert check_headers(headers) == headers
