SELECT organization_id, event_id, id, section, subsection, ordinal, name, capacity, price_cents
FROM blocks
WHERE organization_id = ?1 AND event_id = ?2
ORDER BY ordinal;
