-- Second lock of a step: the timer of the job's schedule, so that no claim gives instants a verdict meanwhile, and how far
-- the schedule is planned; not by an instant that no driver can read, such as `infinity`. Timers of runs (retries, deadlines,
-- tasks that have ended), perhaps many, do not matter here.
select scheduled_for, fire_at from timers where job_id = %(job_id)s and kind in (0, 1, 3)
  and scheduled_for between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
  and fire_at between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
order by scheduled_for for update
