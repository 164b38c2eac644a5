-- Returns which events are new: the relay sends an event again if it crashed before it recorded the acknowledgement.
insert into observer_events (event_id, read_at)
select id, noonmark_now() from unnest(%(ids)b::uuid[]) as u (id) order by id
on conflict do nothing
returning event_id
