-- Records events by source and id; a key that exists is a duplicate event. Keys are sorted, so two intakes that read the
-- same events wait for each other instead of deadlocking. The new keys are returned as one string of 16 bytes each, and
-- only if some were not new.
with kept as (
    insert into inbox (event_key, received_at, source, event_id)
    select event_key, noonmark_now(), coalesce(source, %(sources_all)s::text), event_id
    from unnest(%(keys)b::uuid[], %(sources)b::text[], %(ids)b::text[]) as u (event_key, source, event_id)
    on conflict do nothing
    returning event_key
)
select noonmark_now(), count(*), case when count(*) < %(wanted)s::int then string_agg(uuid_send(kept.event_key), ''::bytea) end
from kept
