-- All that was made of outcomes goes; it is made again from what the topic still holds.
with stats as (delete from job_stats), windows as (delete from outcome_windows), events as (delete from observer_events)
delete from observer_offsets
