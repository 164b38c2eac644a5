"""A dispatcher that relays the outboxes of applications and does nothing else: it needs no Kafka."""

import sys

from noonmark.dispatcher.main import app_outboxes
from noonmark.kafka.topics import Topics
from noonmark.service.runner import run_service
from noonmark.settings import Settings
from noonmark.store.database.hints import HintSender

if __name__ == "__main__":
    settings = Settings.load()
    sys.exit(
        run_service(
            "dispatcher",
            settings,
            lambda service: app_outboxes(
                service, Topics(settings.topic_prefix), HintSender(settings.dsn), shards=4
            ),
        )
    )
