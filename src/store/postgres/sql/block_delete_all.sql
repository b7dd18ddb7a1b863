DELETE FROM blocks
WHERE organization_id = $1::uuid AND event_id = $2::uuid;
