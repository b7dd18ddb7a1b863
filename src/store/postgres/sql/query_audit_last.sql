SELECT coalesce(max(id), 0)
FROM audit_log;
