-- Takes due retries out of the timers; `requeue_runs` promotes their runs in the same transaction.
delete from timers
where ctid = any (array(
    select claimed.ctid
    from unnest(%(shards)b::smallint[]) as owned (shard),
         lateral (
             select ctid from timers
             where shard = owned.shard and lane = %(lane)s and kind = 2 and fire_at <= noonmark_now()
             order by fire_at limit %(limit)s
             for update skip locked
         ) as claimed
))
returning run_id, scheduled_for, job_id, shard
