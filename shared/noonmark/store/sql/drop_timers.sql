-- Removes the timers of jobs that never fire again, or cannot be planned.
delete from timers where ctid = any (%(places)b::tid[])
