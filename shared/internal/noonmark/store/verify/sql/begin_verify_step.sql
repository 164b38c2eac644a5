-- Sets the limits of one step for its transaction, and returns the time. Rows are found by key on any statistics, and in the
-- order of an index where a limit ends the search; a pooler may have ignored the timeout of the connection. A user whom
-- row-level security restricts gets an error, not fewer rows.
select set_config('statement_timeout', %(timeout_ms)s::int::text, true), set_config('enable_seqscan', 'off', true),
       set_config('enable_bitmapscan', 'off', true), set_config('jit', 'off', true),
       set_config('row_security', 'off', true), noonmark_now() as now
