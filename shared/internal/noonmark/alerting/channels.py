"""What a channel is, and those that the settings name."""

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
    """The settings of a channel do not go together; the message names them and says what to do."""


class Channel(Protocol):
    """A way by which alerts reach people.

    Attributes:
        name: as in `alert_deliveries.channel`.
        reminded: it forgets what it is not told again.
        most: deliveries that are told at once.
    """

    name: str
    reminded: bool
    most: int

    def send(self, deliveries: Sequence[Delivery], taken_at: float) -> Sequence[tuple[Delivery, str]]:
        """Tell changes of alerts; return each with what went wrong, or with nothing.

        Args:
            deliveries: each alert once, at most `most`.
            taken_at: `time.monotonic()` when they were taken, which their `now` stands for.
        """

    def close(self) -> None:
        """Release what it holds."""


def channel_names(settings: Settings) -> tuple[str, ...]:
    """Return the names of the channels that the settings turn on."""
    urls = {
        AlertChannel.WEBHOOK: settings.alert_webhook_url,
        AlertChannel.ALERTMANAGER: settings.alertmanager_url,
    }
    return tuple(channel.value for channel, url in urls.items() if url)


def open_channels(settings: Settings) -> list[Channel]:
    """Make the channels that the settings turn on.

    Raises:
        ChannelError: one of them cannot work as it is set.
    """
    links = Links(settings.run_link)
    channels: list[Channel] = []
    if settings.alert_webhook_url:
        secret = settings.alert_webhook_secret.get_secret_value()
        try:
            channels.append(Webhook(settings.alert_webhook_url, secret, links, Poster()))
        except SecretError as error:
            raise ChannelError(
                f"NOONMARK_ALERT_WEBHOOK_SECRET does not go with NOONMARK_ALERT_WEBHOOK_URL: {error};"
                " make one with `openssl rand -base64 32`"
            ) from None
    if settings.alertmanager_url:
        channels.append(Alertmanager(settings.alertmanager_url, links, Poster()))
    return channels
