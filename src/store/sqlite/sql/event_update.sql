UPDATE events
SET name = ?3, status = ?4, sale_start = ?5, sale_end = ?6, currency = ?7, updated_at = ?9,
    hold_ttl_seconds = ?10, checkout_extension_seconds = ?11, hold_max_seconds = ?12,
    release_grace_seconds = ?13, payment_max_seconds = ?14, max_seats_per_user = ?15,
    rate_limit_holds = ?16, rate_limit_window_seconds = ?17, forbid_single_seat_gaps = ?18
WHERE organization_id = ?1 AND id = ?2;
