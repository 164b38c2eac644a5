-- Counts the timers of a job that are not locked although its row is: an earlier transaction replaced them, and the one
-- that holds them now may wait for the job. The others are locked already, or are locked here.
select count(*) from timers where job_id = %(job_id)s and kind in (0, 1, 3)
having count(*) > (
    select count(*)
    from (select from timers where job_id = %(job_id)s and kind in (0, 1, 3) for update skip locked) as mine
)
