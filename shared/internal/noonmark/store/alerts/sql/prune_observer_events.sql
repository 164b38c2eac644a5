-- Ids of events go after an hour: uuid7, so that the oldest lie together.
delete from observer_events
where event_id = any (array(
    select event_id from observer_events
    where event_id < noonmark_first_id(noonmark_now() - interval '1 hour')
    order by event_id limit %(limit)s))
