-- Finds the highest id that a worker was ever given, although its row may be pruned. A user who may not read the sequence gets
-- the highest possible id: no worker is then reported as one that never existed.
select coalesce(case when has_sequence_privilege(name, 'USAGE, SELECT') then pg_sequence_last_value(name::regclass) end,
                9223372036854775807) as id
from pg_get_serial_sequence('workers', 'id') as name
