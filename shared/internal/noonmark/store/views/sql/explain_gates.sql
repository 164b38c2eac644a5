-- The settings of the limits that runs wait for, how much of each is used, and how many runs wait before each of the runs.
select wanted.run_id, limits.max_running, limits.rate_count, limits.rate_seconds, limits.burst, space.max_in_flight,
       (select count(*) from limit_slots where key = wanted.key) as held, bucket.tokens, bucket.age,
       (select count(*) from (
            select from waits where key = wanted.key and (lane, since) < (wait.lane, wait.since) limit 10000
        ) as earlier) as before
from unnest(%(run_ids)b::uuid[], %(keys)b::uuid[]) as wanted (run_id, key)
     join waits as wait on wait.run_id = wanted.run_id
     left join limits on limits.namespace = wait.namespace and limits.name = wait.limit_name
     left join namespaces as space on space.name = wait.namespace and wait.reason = 'fairness'
     left join lateral (
         select tokens, extract(epoch from noonmark_now() - filled_at)::float8 as age from buckets where key = wanted.key offset 0
     ) as bucket on true
