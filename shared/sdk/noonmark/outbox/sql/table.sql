-- The table in an application's database in which jobs are enqueued. Safe to repeat. The relay has one index for each of its
-- searches, so that neither parked rows nor dead tuples of relayed jobs slow it down.
create table if not exists noonmark_outbox (
    id uuid primary key,
    seq bigint generated always as identity,
    created_at timestamptz not null default clock_timestamp(),
    namespace text,
    document jsonb not null,
    idempotency_key text not null,
    parked_at timestamptz,
    error text
);
create index if not exists noonmark_outbox_waiting on noonmark_outbox (seq) where parked_at is null;
create index if not exists noonmark_outbox_parked on noonmark_outbox (parked_at) where parked_at is not null
