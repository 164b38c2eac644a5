-- Whether a locked job has a timer that can come as its document says: one at this instant or before it. A paused job needs
-- only a timer. Otherwise an update plans the job again, even if its document is the same.
select 1 from timers
where job_id = %(job_id)s and kind in (0, 1, 3)
  and fire_at between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
  and scheduled_for between '0001-01-02 00:00+00' and '9999-12-31 00:00+00'
  and coalesce(after_at between '0001-01-02 00:00+00' and '9999-12-31 00:00+00', true)
  and (%(paused)s::boolean
       or (scheduled_for <= %(at)s::timestamptz + interval '1 hour'
           and (after_at = scheduled_for
                or fire_at <= greatest(scheduled_for, %(at)s::timestamptz) + interval '1 hour'
                              + make_interval(secs => %(jitter_seconds)s::float8))))
