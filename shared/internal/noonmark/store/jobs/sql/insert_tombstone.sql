-- A cancel by name leaves its sequence behind: a create that is older must not revive the job. Nothing comes
-- back where a newer cancel was here before.
insert into tombstones as grave (namespace, name, event_sequence, made_at)
values (%(namespace)s, %(name)s, %(sequence)s, noonmark_now())
on conflict (namespace, name) do update
set event_sequence = excluded.event_sequence, made_at = excluded.made_at
where excluded.event_sequence > grave.event_sequence
returning event_sequence
