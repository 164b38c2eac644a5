-- How many recurring jobs of a namespace are in each state, and who paused them; read from the index on names.
select state, paused_by, count(*) from jobs
where namespace = %(name)s and unique_name and state <> 'cancelled'
group by state, paused_by
