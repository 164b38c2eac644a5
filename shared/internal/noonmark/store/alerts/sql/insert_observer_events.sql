-- Which events were not read before: the relay sends one again where it died before it noted the acknowledgement.
insert into observer_events (event_id, read_at)
select id, noonmark_now() from unnest(%(ids)b::uuid[]) as u (id) order by id
on conflict do nothing
returning event_id
