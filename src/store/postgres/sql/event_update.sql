-- The setting, of events that event_lock has locked.
WITH written AS (
    UPDATE events AS e
    SET name = w.name, status = w.status, sale_start = w.sale_start, sale_end = w.sale_end, currency = w.currency,
        updated_at = w.updated_at, hold_ttl_seconds = w.hold_ttl, checkout_extension_seconds = w.extension,
        hold_max_seconds = w.hold_max, release_grace_seconds = w.grace, payment_max_seconds = w.payment_max,
        max_seats_per_user = w.max_seats, rate_limit_holds = w.rate_holds, rate_limit_window_seconds = w.rate_window,
        forbid_single_seat_gaps = w.gaps, version = w.version
    FROM unnest(
        $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::text[],
        $8::timestamptz[], $9::timestamptz[], $10::integer[], $11::integer[], $12::integer[], $13::integer[],
        $14::integer[], $15::integer[], $16::integer[], $17::integer[], $18::integer[], $19::integer[])
        AS w (organization_id, id, name, status, sale_start, sale_end, currency, created_at, updated_at, hold_ttl,
              extension, hold_max, grace, payment_max, max_seats, rate_holds, rate_window, gaps, version)
    WHERE e.organization_id = w.organization_id AND e.id = w.id AND e.version = w.version - 1
    RETURNING 1
)
SELECT 1 / (count(*) = $20::integer)::integer -- a row that was not there fails the statement
FROM written;
