UPDATE tickets
SET refunded_at = ?3
WHERE organization_id = ?1 AND id = ?2;
