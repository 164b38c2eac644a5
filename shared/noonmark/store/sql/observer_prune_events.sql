-- Ids of events go after an hour: uuid7, so that the oldest lie together.
delete from observer_events
where event_id = any (array(
    select event_id from observer_events
    where event_id < (lpad(to_hex((extract(epoch from noonmark_now() - interval '1 hour') * 1000)::bigint), 12, '0')
                      || repeat('0', 20))::uuid
    order by event_id limit %(limit)s))
