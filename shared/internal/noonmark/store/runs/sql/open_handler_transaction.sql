-- The first statement of a handler's transaction: the server ends it when the attempt's time is over, whatever the worker
-- does. The mark is local to the transaction, which shows if the handler ended the transaction itself.
-- `transaction_timeout` exists since Postgres 17.
select set_config('noonmark.attempt', %(mark)s, true),
       set_config('statement_timeout', %(milliseconds)s, true),
       set_config('idle_in_transaction_session_timeout', %(milliseconds)s, true),
       case when current_setting('transaction_timeout', true) is not null
            then set_config('transaction_timeout', %(milliseconds)s, true) end
