"""Settings of the connection to Kafka that fit together, and those that do not."""

import pytest
from pydantic import ValidationError

from noonmark.settings import Settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kafka_security_protocol": "SASL_SSL"}, "needs NOONMARK_KAFKA_SASL_MECHANISM"),
        ({"kafka_sasl_mechanism": "PLAIN"}, "is not used with NOONMARK_KAFKA_SECURITY_PROTOCOL=PLAINTEXT"),
        (
            {"kafka_security_protocol": "SASL_SSL", "kafka_sasl_mechanism": "OAUTHBEARER"},
            "OAUTHBEARER needs NOONMARK_KAFKA_OAUTH_TOKEN_URL and NOONMARK_KAFKA_SASL_USERNAME",
        ),
        ({"kafka_oauth_token_url": "http://login.example.com/token"}, "is not https"),
        ({"kafka_sasl_mechanism": "GSSAPI"}, "Input should be '', 'PLAIN', 'SCRAM-SHA-256'"),
    ],
)
def test_a_connection_to_kafka_that_no_client_can_make_is_refused(settings, said):
    with pytest.raises(ValidationError, match=said):
        Settings(**settings)
