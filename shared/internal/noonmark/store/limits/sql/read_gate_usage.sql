-- Reads the usage of gates: the numbers of their used slots, and the tokens of their buckets with the age of that figure.
select gate.key, used.numbers, overlap.run_id is not null as overlap_used, bucket.tokens, bucket.age
from unnest(%(keys)b::uuid[]) as gate (key)
     left join lateral (
         select array_agg(slot_no) as numbers from limit_slots where key = gate.key offset 0
     ) as used on true
     left join lateral (select run_id from slots where key = gate.key offset 0) as overlap on true
     left join lateral (
         select tokens, extract(epoch from noonmark_now() - filled_at)::float8 as age from buckets where key = gate.key offset 0
     ) as bucket on true
