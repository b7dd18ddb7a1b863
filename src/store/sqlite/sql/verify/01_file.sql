-- The file is sound.
SELECT count(*), min(integrity_check)
FROM pragma_integrity_check
WHERE integrity_check <> 'ok';
