-- A batch is small and every statement of it follows an index; plans are made once and must not depend on how full the
-- tables were at that moment.
SELECT
    set_config('statement_timeout', '2s', false),
    set_config('lock_timeout', '1500ms', false),
    set_config('idle_in_transaction_session_timeout', '5s', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('enable_seqscan', 'off', false),
    set_config('enable_bitmapscan', 'off', false),
    set_config('enable_hashjoin', 'off', false),
    set_config('enable_mergejoin', 'off', false),
    set_config('jit', 'off', false);
