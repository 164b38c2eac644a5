"""The interface of alert channels, and the channels that the settings enable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from noonmark.alerting.alertmanager import Alertmanager
from noonmark.alerting.http_post import Poster
from noonmark.alerting.links import Links
from noonmark.alerting.webhook import Webhook
from noonmark.core.access.webhook_signature import SecretError
from noonmark.core.monitoring.alerts import AlertChannel
from noonmark.settings import Settings
from noonmark.store.alerts.deliveries import Delivery


class ChannelError(Exception):
    """The settings of a channel are invalid; the message names them and says what to do."""


class Channel(Protocol):
    """A way by which alerts reach people.

    Attributes:
        name: the value of `alert_deliveries.channel`.
        reminded: whether it needs reminders of open alerts.
        most: maximum number of deliveries for one call of `send`.
    """

    name: str
    reminded: bool
    most: int

    def send(self, deliveries: Sequence[Delivery], taken_at: float) -> Sequence[tuple[Delivery, str]]:
        """Send changes of alerts; return each with its error, "" for none.

        Args:
            deliveries: at most `most` deliveries, each of another alert.
            taken_at: `time.monotonic()` when they were leased, the moment of their `now`.
        """

    def close(self) -> None:
        """Release threads and connections."""


def channel_names(settings: Settings) -> tuple[str, ...]:
    """Return the names of the channels that the settings enable."""
    urls = {
        AlertChannel.WEBHOOK: settings.alert_webhook_url,
        AlertChannel.ALERTMANAGER: settings.alertmanager_url,
    }
    return tuple(channel.value for channel, url in urls.items() if url)


def open_channels(settings: Settings) -> list[Channel]:
    """Create the channels that the settings enable.

    Raises:
        ChannelError: the settings of a channel are invalid.
    """
    links = Links(settings.run_link)
    channels: list[Channel] = []
    if settings.alert_webhook_url:
        secret = settings.alert_webhook_secret.get_secret_value()
        try:
            channels.append(Webhook(settings.alert_webhook_url, secret, links, Poster()))
        except SecretError as error:
            raise ChannelError(
                f"NOONMARK_ALERT_WEBHOOK_URL needs a valid NOONMARK_ALERT_WEBHOOK_SECRET: {error};"
                " create one with `openssl rand -base64 32`"
            ) from None
    if settings.alertmanager_url:
        channels.append(Alertmanager(settings.alertmanager_url, links, Poster()))
    return channels
