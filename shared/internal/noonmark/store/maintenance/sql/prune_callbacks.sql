-- Deletes callbacks of attempts that ended without their worker: it died between opening them and the outcome.
delete from callbacks
where opened_at < noonmark_now() - interval '1 hour'
  and not exists (select from runs
                  where id = callbacks.run_id and scheduled_for = callbacks.scheduled_for and fence = callbacks.fence
                    and state in ('running', 'cancelling'))
