-- Writes the tokens that are left in the buckets from which runs took some.
insert into buckets (key, tokens, filled_at)
select key, tokens, noonmark_now() from unnest(%(keys)b::uuid[], %(tokens)b::float8[]) as u (key, tokens)
on conflict (key) do update set tokens = excluded.tokens, filled_at = excluded.filled_at
