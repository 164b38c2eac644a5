-- Takes due timers of runs that exist out of the table: retries (kind 2), which `requeue_runs` promotes, and ends of the
-- time for a callback (kind 4), whose attempts the caller ends. Both in the same transaction.
delete from timers
where ctid = any (array(
    select claimed.ctid
    from unnest(%(shards)b::smallint[]) as owned (shard),
         lateral (
             select ctid from timers
             where shard = owned.shard and lane = %(lane)s and kind = %(kind)s and fire_at <= noonmark_now()
             order by fire_at limit %(limit)s
             for update skip locked
         ) as claimed
))
returning run_id, scheduled_for, job_id, shard
