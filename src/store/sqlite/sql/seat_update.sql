-- The compare-and-set: no row is changed unless it is this seat at the expected version.
UPDATE seats
SET status = ?5, held_until = ?6, locked_at = ?7, seat_hold_id = ?8, ticket_id = ?9, version = ?4 + 1
WHERE place = ?1 AND id = ?2 AND organization_id = ?3 AND version = ?4;
