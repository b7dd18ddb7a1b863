SELECT organization_id, event_id, id, section, subsection, ordinal, name, capacity, price_cents
FROM blocks
WHERE organization_id = $1::uuid AND event_id = $2::uuid
ORDER BY ordinal;
