-- The job that currently has a name. One-time jobs can share names and are not found by them.
select id from jobs where namespace = %(namespace)s and name = %(name)s and unique_name and state <> 'cancelled'
