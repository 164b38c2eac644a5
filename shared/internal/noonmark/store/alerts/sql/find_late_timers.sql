-- Instants that no trigger has planned in time: the oldest of each (shard, lane, kind). `find_late_by_rule` checks jobs with
-- their own rule. They are filtered row by row, with an estimate of few such rows, so that the order of the index is used.
-- Instants that no driver can read, such as `-infinity`, are left out.
select due.job_id, due.namespace, due.pool, due.fire_at, coalesce(job.unique_name, false) as recurring, job.name
from unnest(%(shards)b::smallint[]) as shards (shard),
     unnest('{0,1,2}'::smallint[]) as lanes (lane),
     unnest('{0,1,3}'::smallint[]) as kinds (kind),
     lateral (
         select job_id, namespace, pool, fire_at from timers
         where shard = shards.shard and lane = lanes.lane and kind = kinds.kind
           and fire_at >= '0001-01-02 00:00+00'
           and fire_at < noonmark_now() - make_interval(secs => %(late_after)s)
           and coalesce((select late_after_seconds from late_rules where late_rules.job_id = timers.job_id offset 0), 0) < 1
         order by fire_at limit %(limit)s
     ) as due
     left join lateral (select unique_name, name from jobs where id = due.job_id offset 0) as job on true
