-- Deletes all statistics of outcomes; they are rebuilt from what the topic still contains.
with stats as (delete from job_stats), events as (delete from observer_events)
delete from observer_offsets
