-- Has the waiting runs of an edited job checked again, under what the job needs now.
update waits set key = %(key)s, limit_name = null, limit_key = null where job_id = %(job_id)s and key is not null
