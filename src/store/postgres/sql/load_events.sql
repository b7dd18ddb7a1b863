SELECT
    organization_id, id, name, status, sale_start, sale_end, currency, created_at, updated_at, version,
    hold_ttl_seconds, checkout_extension_seconds, hold_max_seconds, release_grace_seconds, payment_max_seconds,
    max_seats_per_user, rate_limit_holds, rate_limit_window_seconds, forbid_single_seat_gaps
FROM events
ORDER BY created_at, id;
