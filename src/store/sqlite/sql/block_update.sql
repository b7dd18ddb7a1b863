UPDATE blocks
SET name = ?4, capacity = ?5, price_cents = ?6
WHERE organization_id = ?1 AND event_id = ?2 AND id = ?3;
