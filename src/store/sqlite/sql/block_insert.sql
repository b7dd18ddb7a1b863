INSERT INTO blocks (organization_id, event_id, id, ordinal, section, subsection, name, capacity, price_cents)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);
