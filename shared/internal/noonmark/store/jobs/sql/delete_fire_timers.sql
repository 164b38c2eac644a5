-- Deletes the instants of a job that is cancelled or gets another schedule; its retries stay. Instants that no driver can
-- read, such as `infinity`, are deleted and not returned.
with deleted as (
    delete from timers where job_id = %(job_id)s and kind in (0, 1, 3)
    returning scheduled_for, after_at, runs_left
)
select * from deleted
where scheduled_for between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
  and coalesce(after_at between '0001-01-02 00:00+00' and '9999-12-31 00:00+00', true)
