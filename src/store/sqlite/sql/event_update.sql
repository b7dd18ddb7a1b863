-- The compare-and-set: no row is changed unless it is at the expected version.
UPDATE events
SET name = ?3, status = ?4, sale_start = ?5, sale_end = ?6, currency = ?7, updated_at = ?9, version = ?10,
    hold_ttl_seconds = ?11, checkout_extension_seconds = ?12, hold_max_seconds = ?13,
    release_grace_seconds = ?14, payment_max_seconds = ?15, max_seats_per_user = ?16,
    rate_limit_holds = ?17, rate_limit_window_seconds = ?18, forbid_single_seat_gaps = ?19
WHERE organization_id = ?1 AND id = ?2 AND version = ?10 - 1;
