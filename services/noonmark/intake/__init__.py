"""Takes submissions from Kafka into the database: checked, in batches, once each or refused with a reason."""
