-- Takes deadlines that have passed out of the timers; the caller ends those attempts in the same transaction.
delete from timers
where ctid = any (array(
    select claimed.ctid
    from unnest(%(shards)b::smallint[]) as owned (shard),
         lateral (
             select ctid from timers
             where shard = owned.shard and lane = %(lane)s and kind = 4 and fire_at <= noonmark_now()
             order by fire_at limit %(limit)s
             for update skip locked
         ) as claimed
))
returning run_id
