INSERT INTO events (
    organization_id, id, name, status, sale_start, sale_end, currency, created_at, updated_at,
    hold_ttl_seconds, checkout_extension_seconds, hold_max_seconds, release_grace_seconds, payment_max_seconds,
    max_seats_per_user, rate_limit_holds, rate_limit_window_seconds, forbid_single_seat_gaps, version)
SELECT w.*, 1
FROM unnest(
    $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::text[],
    $8::timestamptz[], $9::timestamptz[], $10::integer[], $11::integer[], $12::integer[], $13::integer[],
    $14::integer[], $15::integer[], $16::integer[], $17::integer[], $18::integer[]) AS w;
