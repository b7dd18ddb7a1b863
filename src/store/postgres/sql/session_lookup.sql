-- Single rows by their keys: the same plans, always, and one snapshot for all that is asked together. An event of
-- 100,000 seats, or many changes, may take longer than a transaction of holds; who asks for less does not wait so long.
SELECT
    set_config('statement_timeout', '10s', false),
    set_config('lock_timeout', '1500ms', false),
    set_config('idle_in_transaction_session_timeout', '2s', false),
    set_config('default_transaction_isolation', 'repeatable read', false),
    set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('enable_seqscan', 'off', false),
    set_config('enable_bitmapscan', 'off', false),
    set_config('enable_hashjoin', 'off', false),
    set_config('enable_mergejoin', 'off', false),
    set_config('jit', 'off', false);
