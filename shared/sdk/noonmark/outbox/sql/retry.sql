-- Lets parked rows be relayed again, once what was wrong with them is mended. Their place in the order is kept.
update noonmark_outbox set parked_at = null, error = null
where parked_at is not null and (%(id)s::uuid is null or id = %(id)s::uuid)
