-- Every ended hold says when and why, and no active one does.
SELECT count(*), min('hold ' || id::text)
FROM seat_holds
WHERE CASE status
    WHEN 'active' THEN coalesce(expired_at, converted_at, cancelled_at) IS NOT NULL OR cancellation_reason IS NOT NULL
    WHEN 'converted' THEN converted_at IS NULL OR cancellation_reason IS NOT NULL
    WHEN 'expired' THEN expired_at IS NULL OR cancellation_reason IS DISTINCT FROM 'ttl_expired'
    WHEN 'cancelled' THEN cancelled_at IS NULL
        OR coalesce(cancellation_reason, '') NOT IN ('user_cancelled', 'payment_failed', 'admin_override')
    ELSE true
END;
