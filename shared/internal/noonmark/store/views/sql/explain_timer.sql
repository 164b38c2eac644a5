-- The next instant of a job; retries of runs have separate timers. Instants that no driver can read, such as `infinity`, are
-- returned as text only.
select case when noted.readable then scheduled_for end as scheduled_for, case when noted.readable then fire_at end as fire_at,
       case when noted.readable then after_at end as after_at, kind,
       case when not noted.readable then concat_ws(', ', scheduled_for, fire_at, after_at) end as unreadable
from timers,
     lateral (
         select scheduled_for between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
                and fire_at between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
                and coalesce(after_at between '0001-01-02 00:00+00' and '9999-12-31 00:00+00', true) as readable
     ) as noted
where job_id = %(job_id)s and kind in (0, 1, 3)
order by timers.fire_at limit 1
