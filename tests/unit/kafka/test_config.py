import pytest

from noonmark.kafka.config import CLIENT_LOGGER, KafkaConfig


def test_the_password_never_shows():
    config = KafkaConfig("broker:9092", sasl_username="app", sasl_password="hunter22")
    assert "hunter22" not in repr(config)
    assert "hunter22" not in str(config)
    assert config.client()["sasl.password"] == "hunter22"


def test_only_what_is_set_reaches_the_client():
    properties = KafkaConfig("broker:9092", ssl_ca_location="", sasl_username="").client()
    assert not [name for name in properties if name.startswith(("sasl.", "ssl."))]
    assert properties["bootstrap.servers"] == "broker:9092"
    assert properties["socket.keepalive.enable"] is True
    assert properties["logger"] is CLIENT_LOGGER


def test_overrides_name_properties_with_underscores():
    def hook(_error):
        return None

    properties = KafkaConfig("broker:9092").client(client_id="relay", linger_ms=3, error_cb=hook)
    assert properties["client.id"] == "relay"
    assert properties["linger.ms"] == 3
    assert properties["error_cb"] is hook


def test_settings_that_cannot_work_are_refused():
    with pytest.raises(ValueError, match="bootstrap is empty"):
        KafkaConfig(" ")
    with pytest.raises(ValueError, match="use consumer or classic"):
        KafkaConfig("broker:9092", group_protocol="share")  # type: ignore[arg-type]


def test_a_client_id_and_secret_go_to_the_token_endpoint_only():
    config = KafkaConfig(
        "broker:9092",
        sasl_mechanism="OAUTHBEARER",
        sasl_username="app",
        sasl_password="hunter22",
        oauth_token_url="https://login.example.com/token",
    )
    properties = config.client()
    assert {name: value for name, value in properties.items() if name.startswith("sasl.")} == {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "app",
        "sasl.oauthbearer.client.secret": "hunter22",
        "sasl.oauthbearer.token.endpoint.url": "https://login.example.com/token",
    }
    assert "hunter22" not in repr(config)
