-- Lists the members that share the shards of a role now, by the database's clock.
select id from members
where role = %(role)s and beat_at > noonmark_now() - make_interval(secs => %(timeout_seconds)s)
order by id
