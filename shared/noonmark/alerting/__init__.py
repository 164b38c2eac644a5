"""The channels by which alerts reach people: a signed webhook, and Alertmanager."""
