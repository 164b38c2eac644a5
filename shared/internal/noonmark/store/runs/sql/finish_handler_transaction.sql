-- The first statement after a handler has returned: settings of the handler must not affect what is recorded in its
-- transaction. Its temporary tables come last in the search path; by default they would hide ours of the same name. The
-- mark is missing if the handler ended the transaction itself.
select current_setting('noonmark.attempt', true),
       set_config('role', 'none', true),
       set_config('search_path', concat_ws(', ', nullif((select reset_val from pg_settings where name = 'search_path'), ''),
                                           'pg_temp'), true),
       set_config('statement_timeout', (select reset_val from pg_settings where name = 'statement_timeout'), true),
       set_config('lock_timeout', (select reset_val from pg_settings where name = 'lock_timeout'), true)
