-- Ids are made in order of time, so the oldest come first; the bound keeps this from walking the table.
DELETE FROM batches
WHERE id IN (SELECT id FROM batches WHERE id > zeroblob(16) ORDER BY id LIMIT ?2)
  AND created_at < ?1;
