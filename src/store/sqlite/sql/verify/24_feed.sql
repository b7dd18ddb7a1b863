-- The change feed has no gap.
SELECT coalesce(max(id) - min(id) + 1 - count(*), 0), 'changes ' || min(id) || ' to ' || max(id)
FROM changes;
