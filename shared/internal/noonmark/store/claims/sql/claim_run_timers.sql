-- Deletes and returns due timers of existing runs: retries (kind 2), whose runs `requeue_runs` queues, and callback deadlines
-- (kind 4), whose attempts the caller ends. Both happen in the same transaction. An instant that no driver can read, such as
-- `infinity`, is left alone: it would stop all claims of its lane.
delete from timers
where ctid = any (array(
    select claimed.ctid
    from unnest(%(shards)b::smallint[]) as owned (shard),
         lateral (
             select ctid from timers
             where shard = owned.shard and lane = %(lane)s and kind = %(kind)s
               and fire_at between '0001-01-02 00:00+00' and noonmark_now()
               and scheduled_for between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
             order by fire_at limit %(limit)s
             for update skip locked
         ) as claimed
))
returning run_id, scheduled_for, job_id, shard
