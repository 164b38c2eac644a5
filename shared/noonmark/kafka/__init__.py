"""Kafka: topics and lanes, clients, the lane consumer and its offset tracking."""
