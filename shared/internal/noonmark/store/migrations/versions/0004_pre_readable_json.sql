-- A stored document, or null if Postgres cannot read it: a column of type `json` stores every escape as it came, also half of a
-- surrogate pair and NUL, and an operator or a cast that meets one ends its whole statement. Postgres 16 has
-- pg_input_is_valid(); this works on 15 too.
create function noonmark_readable(document json) returns json
    language sql immutable parallel safe
    return case when document::text !~* '(^|[^\\])(\\\\)*\\u(d[89a-f]|0000)' then document end;
