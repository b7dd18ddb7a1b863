-- One user's: few, and found by their index, so that any number of others' costs nothing.
SELECT
    c.id, c.event_id, c.user_id, c.status, c.refund, c.reason, c.currency, c.total_cents,
    (SELECT count(*) FROM seat_holds AS h
     WHERE h.organization_id = c.organization_id AND h.checkout_id = c.id),
    c.created_at, c.expires_at, c.ended_at, c.number
FROM checkouts AS c INDEXED BY checkouts_by_user
WHERE c.number < ?1 AND c.number >= ?2 AND c.organization_id = ?3
  AND (?5 IS NULL OR c.id = ?5)
  AND (?6 IS NULL OR c.event_id = ?6)
  AND c.user_id = ?7
  AND (?8 IS NULL OR c.status = ?8)
  AND (?9 IS NULL OR c.created_at >= ?9)
ORDER BY c.number DESC
LIMIT ?4;
