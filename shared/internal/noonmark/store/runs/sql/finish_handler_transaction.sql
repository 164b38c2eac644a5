-- First statement after a handler has returned: what it set must not change what is recorded in its transaction. Its
-- temporary tables come last, for by default they would stand before ours of the same name. The mark is gone where the
-- handler has ended the transaction itself.
select current_setting('noonmark.attempt', true),
       set_config('role', 'none', true),
       set_config('search_path', concat_ws(', ', nullif((select reset_val from pg_settings where name = 'search_path'), ''),
                                           'pg_temp'), true),
       set_config('statement_timeout', (select reset_val from pg_settings where name = 'statement_timeout'), true),
       set_config('lock_timeout', (select reset_val from pg_settings where name = 'lock_timeout'), true)
