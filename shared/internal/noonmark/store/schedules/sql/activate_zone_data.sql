-- Activates a release of the zone data. A separate statement must have deactivated the previous one.
insert into zone_data (version, active, activated_at, timers, moved)
values (%(version)s, true, noonmark_now(), %(timers)s, %(moved)s)
on conflict (version) do update
set active = true, activated_at = excluded.activated_at, timers = excluded.timers, moved = excluded.moved
returning activated_at
