-- Reads the topics whose groups have passed everything acknowledged before `passed_until`, measured lately; and how far to
-- search back: two days, what backfills queued lately, and as far as open workflow runs, whose tasks have their instants; or the
-- whole ledger for an hour after a topic lost records.
select topic, passed_until,
       case when lost_at > noonmark_now() - interval '1 hour'
            then (select ledger_floor from install)
            else least(noonmark_now() - interval '2 days',
                       (select min(from_at) from backfills
                        where state = 'running' or finished_at > noonmark_now() - interval '2 days'),
                       (select min(scheduled_for) from workflows))
       end as since
from topic_progress
where measured_at > noonmark_now() - interval '5 minutes'
