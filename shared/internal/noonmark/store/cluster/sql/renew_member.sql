-- Records a heartbeat of a trigger or dispatcher.
insert into members (role, id, host, pid, joined_at, beat_at, release, capabilities)
values (%(role)s, %(id)s, %(host)s, %(pid)s, noonmark_now(), noonmark_now(), %(release)s, %(capabilities)s)
on conflict (role, id) do update set beat_at = excluded.beat_at
