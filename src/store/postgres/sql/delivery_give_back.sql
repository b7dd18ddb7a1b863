DELETE FROM deliveries
WHERE name = ANY ($1::text[]);
