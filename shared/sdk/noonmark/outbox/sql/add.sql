-- Enqueues one job inside the application's transaction, with no lock that another transaction could wait for.
insert into noonmark_outbox (id, namespace, document, idempotency_key)
values (cast(%(id)s as uuid), %(namespace)s, cast(%(document)s as jsonb), %(idempotency_key)s)
