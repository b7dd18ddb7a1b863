-- Lists for people: the planner may choose, for a bounded time.
SELECT
    set_config('statement_timeout', '5s', false),
    set_config('idle_in_transaction_session_timeout', '30s', false),
    set_config('jit', 'off', false);
