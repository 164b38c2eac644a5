-- Records the sequence of a cancel by name, so that an older create cannot revive the job. Returns nothing if a newer
-- cancel was recorded before.
insert into tombstones as stored (namespace, name, event_sequence, made_at)
values (%(namespace)s, %(name)s, %(sequence)s, noonmark_now())
on conflict (namespace, name) do update
set event_sequence = excluded.event_sequence, made_at = excluded.made_at
where excluded.event_sequence > stored.event_sequence
returning event_sequence
