-- Reads every process that reported lately, and how long ago it reported and made progress.
select service, host, pid, stuck,
       extract(epoch from noonmark_now() - seen_at)::float8 as seen_seconds,
       extract(epoch from noonmark_now() - progressed_at)::float8 as progressed_seconds
from process_progress
order by service, progressed_at desc
