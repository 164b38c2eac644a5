-- What is live and lacks a capability: triggers and dispatchers by their role, workers by their pool.
select role as what, '' as pool from members
where role = any (%(roles)b::text[]) and beat_at > noonmark_now() - make_interval(secs => %(timeout_seconds)s)
  and not %(capability)s = any (capabilities)
union
select 'worker', pool from workers
where pool = any (%(pools)b::text[]) and lapsed_at is null and left_at is null and not %(capability)s = any (capabilities)
order by 1, 2
