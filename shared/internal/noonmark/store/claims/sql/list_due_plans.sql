-- What most of the due timers have in common that decides their plan: one row for each group, the largest first. It reads some
-- timers of each shard, without a lock: `claim_alike` compares each timer with its group again when it has locked it.
with due as materialized (
    select claimed.*
    from unnest(%(shards)b::smallint[]) as owned (shard),
         lateral (
             select scheduled_for, after_at, after_offset, job_id
             from timers
             where shard = owned.shard and lane = %(lane)s and kind = %(kind)s
               and fire_at between '0001-01-02 00:00+00' and noonmark_now()
             order by fire_at limit %(limit)s
         ) as claimed
)
select '' as place, due.scheduled_for, due.after_at, (array_agg(due.job_id))[1] as job_id, 0 as job_version,
       null::int as runs_left, due.after_offset, 0 as shard, '' as namespace, '' as pool, 'active' as state,
       job.schedule::text, job.policy::text, null::timestamptz as created_at, null::timestamptz as updated_at,
       null::timestamptz as resumed_at, null::text as resume_choice, noonmark_now() as now,
       (select ledger_floor from install) as floor, false as capped
from due
join lateral (
    select schedule, policy from jobs
    where id = due.job_id and state = 'active' and schedule is not null offset 0
) as job on true
where due.scheduled_for between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
  and coalesce(due.after_at between '0001-01-02 00:00+00' and '9999-12-31 00:00+00', true)
group by due.scheduled_for, due.after_at, due.after_offset, job.schedule, job.policy
order by count(*) desc limit %(groups)s
