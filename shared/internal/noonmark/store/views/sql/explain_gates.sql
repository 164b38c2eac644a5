-- What the gates that runs wait before let through, what is taken there, and how many stand before each of the runs.
select wish.run_id, limits.max_running, limits.rate_count, limits.rate_seconds, limits.burst, space.max_in_flight,
       (select count(*) from limit_slots where key = wish.key) as held, bucket.tokens, bucket.age,
       (select count(*) from (
            select from waits where key = wish.key and (lane, since) < (wait.lane, wait.since) limit 10000
        ) as earlier) as before
from unnest(%(run_ids)b::uuid[], %(keys)b::uuid[]) as wish (run_id, key)
     join waits as wait on wait.run_id = wish.run_id
     left join limits on limits.namespace = wait.namespace and limits.name = wait.limit_name
     left join namespaces as space on space.name = wait.namespace and wait.reason = 'fairness'
     left join lateral (
         select tokens, extract(epoch from noonmark_now() - filled_at)::float8 as age from buckets where key = wish.key offset 0
     ) as bucket on true
