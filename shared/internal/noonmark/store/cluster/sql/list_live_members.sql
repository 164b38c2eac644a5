-- Who shares the shards of a role at this moment, by the database's clock.
select id from members
where role = %(role)s and beat_at > noonmark_now() - make_interval(secs => %(timeout_seconds)s)
order by id
