-- Lets parked rows be relayed again after their problem is fixed. They keep their position in the order.
update noonmark_outbox set parked_at = null, error = null
where parked_at is not null and (%(id)s::uuid is null or id = %(id)s::uuid)
