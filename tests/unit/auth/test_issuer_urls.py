"""Where an identity provider may be, and what the settings say about it."""

import pytest

from noonmark.core.access.issuer_urls import is_loopback, issuer_url_problem
from noonmark.settings import Settings, SettingsError


@pytest.mark.parametrize(
    "url",
    [
        "https://login.example.com",
        "https://login.example.com:8443/realms/main",
        "http://localhost:8080/realm",
        "http://127.0.0.1:1/x",
        "http://[::1]:8080",
    ],
)
def test_https_will_do_and_http_on_this_very_host(url):
    assert issuer_url_problem(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "",
        "login.example.com",
        "http://login.example.com",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "http://10.0.0.1",
        "http://0.0.0.0",
        "ftp://localhost",
        "file:///etc/passwd",
        "https://user:password@login.example.com",
        "https://login.example.com/#x",
        "https://login.example.com:port",
        "https://login.exa mple.com",
        "https://lögin.example.com",
        "https://[::1",
    ],
)
def test_anything_else_will_not(url):
    assert issuer_url_problem(url) is not None


def test_loopback_is_told_by_address_not_by_how_a_name_begins():
    assert is_loopback("http://127.8.9.1/")
    assert not is_loopback("http://127.0.0.1.nip.example/")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"oidc_issuer": "http://login.example.com", "oidc_audience": "x"},
            "NOONMARK_OIDC_ISSUER is not https",
        ),
        ({"oidc_issuer": "https://login.example.com"}, "NOONMARK_OIDC_AUDIENCE is missing"),
        ({"oidc_audience": "x"}, "NOONMARK_OIDC_AUDIENCE is set without NOONMARK_OIDC_ISSUER"),
    ],
)
def test_half_a_provider_is_no_setting(given, told):
    with pytest.raises(SettingsError, match=told):
        Settings.load(**given)
