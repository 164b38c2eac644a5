-- Outcomes of jobs in the last hour.
select job_id, sum(succeeded)::bigint, sum(failed)::bigint, sum(dead)::bigint, sum(skipped)::bigint, sum(other)::bigint,
       (select array_agg(total order by place) from (
           select place, sum(count)::bigint as total
           from outcome_windows as w, unnest(w.seconds_buckets) with ordinality as b (count, place)
           where w.job_id = outcome_windows.job_id and w.window_at > noonmark_now() - interval '1 hour' group by place) as sums)
from outcome_windows
where job_id = any (%(ids)b::uuid[]) and window_at > noonmark_now() - interval '1 hour'
group by job_id
