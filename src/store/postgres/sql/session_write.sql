-- A batch is small and every statement of it follows an index; plans are made once and must not depend on how full the
-- tables were at that moment. A transaction may take 2 s: while it is open nobody sees what comes after it in the change
-- feed, so one whose node does not go on is ended, before those who wait for its locks give up.
-- The name tells the others that this is a node: see the view feed.
SELECT
    set_config(
        'application_name',
        regexp_replace(current_setting('application_name'), '^(?!holdfast)', 'holdfast '), false),
    set_config('statement_timeout', '2s', false),
    set_config('lock_timeout', '1500ms', false),
    set_config('idle_in_transaction_session_timeout', '1s', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('enable_seqscan', 'off', false),
    set_config('enable_bitmapscan', 'off', false),
    set_config('enable_hashjoin', 'off', false),
    set_config('enable_mergejoin', 'off', false),
    set_config('jit', 'off', false);
