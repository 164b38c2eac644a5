-- Records a heartbeat of a trigger, dispatcher or observer, and lists the members that share the shards of its role now, by the
-- database's clock: itself in any case, although this statement does not see its own heartbeat.
with renewed as (
    insert into members (role, id, host, pid, joined_at, beat_at, release, capabilities)
    values (%(role)s, %(id)s, %(host)s, %(pid)s, noonmark_now(), noonmark_now(), %(release)s, %(capabilities)s)
    on conflict (role, id) do update set beat_at = excluded.beat_at
    returning id
)
select id from renewed
union
select id from members where role = %(role)s and beat_at > noonmark_now() - make_interval(secs => %(timeout_seconds)s)
order by id
