-- Stores the contents of a calendar. The caller keeps out all other changes of the facts that schedules are read with.
insert into calendars (namespace, name, digest, updated_at) values (%(namespace)s, %(name)s, %(digest)s, noonmark_now())
on conflict (namespace, name) do update set digest = excluded.digest, updated_at = excluded.updated_at
