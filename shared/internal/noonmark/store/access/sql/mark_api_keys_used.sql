-- Records which keys are in use, at most once a minute for each key, however many processes it is used with. Rows are
-- locked in the order of the ids, so that two processes never wait for each other.
update api_keys set last_used_at = noonmark_now()
where ctid = any (array(
    select ctid from api_keys
    where key_id = any (%(key_ids)s) and (last_used_at is null or last_used_at < noonmark_now() - interval '1 minute')
    order by key_id
    for update skip locked
))
