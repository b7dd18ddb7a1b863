-- Loading, migrating and verifying take as long as they take; waiting for somebody's lock does not.
SELECT
    set_config('statement_timeout', '0', false),
    set_config('lock_timeout', '60s', false),
    set_config('idle_in_transaction_session_timeout', '0', false),
    set_config('jit', 'off', false);
