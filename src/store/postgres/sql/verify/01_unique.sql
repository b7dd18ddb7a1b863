-- The indexes that keep the promises are there, unique and valid.
SELECT count(*), min('index ' || w.name)
FROM (VALUES ('seat_holds_active'), ('tickets_valid'), ('seats_pkey'), ('seats_by_position'), ('batches_pkey'))
    AS w (name)
LEFT JOIN pg_index AS i ON i.indexrelid = to_regclass(w.name)
WHERE i.indexrelid IS NULL OR NOT i.indisunique OR NOT i.indisvalid;
