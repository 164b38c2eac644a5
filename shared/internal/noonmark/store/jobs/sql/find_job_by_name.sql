-- The job that has a name now. One-time jobs share names and are not found by them.
select id from jobs where namespace = %(namespace)s and name = %(name)s and unique_name and state <> 'cancelled'
