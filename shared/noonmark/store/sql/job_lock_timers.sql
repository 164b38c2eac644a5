-- First lock of every control statement: a claim of these timers under way ends before, another skips them.
select kind from timers where job_id = %(job_id)s for update
