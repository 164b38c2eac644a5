-- Stores the trace that a client's submission belongs to, for one-time jobs that this transaction created.
update jobs set traceparent = traced.traceparent
from unnest(%(ids)s::uuid[], %(traceparents)s::text[]) as traced (id, traceparent)
where jobs.id = traced.id
