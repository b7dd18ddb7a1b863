-- Ids are made in order of time, so the oldest come first; the bound keeps this from walking the table.
DELETE FROM batches
WHERE id IN (
    SELECT id
    FROM batches
    WHERE id > '00000000-0000-0000-0000-000000000000'
    ORDER BY id
    LIMIT $2::integer
    FOR UPDATE SKIP LOCKED)
  AND created_at < $1::timestamptz;
