-- What earlier attempts left to runs that are started again. Rejections are counted back to the newest attempt with another
-- outcome: a handler was called since, or the run ended and was redriven. A hand-back says nothing about the handler.
select run_id, (select checkpoint::text from run_notes where run_notes.run_id = given.run_id),
       (
           select count(*) from attempts
           where attempts.run_id = given.run_id and outcome = 'rejected' and fence > coalesce((
               select max(called.fence) from attempts as called
               where called.run_id = given.run_id and called.outcome not in ('rejected', 'handed_back')
           ), 0)
       )
from unnest(%(ids)b::uuid[]) as given (run_id)
