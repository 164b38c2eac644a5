-- Deletes event ids after an hour. They are UUIDv7, so the oldest are next to each other.
delete from observer_events
where event_id = any (array(
    select event_id from observer_events
    where event_id < noonmark_first_id(noonmark_now() - interval '1 hour')
    order by event_id limit %(limit)s))
