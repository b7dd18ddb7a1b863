-- Every state is one that exists, and every version counts from 1.
SELECT count(*), min(example)
FROM (
    SELECT 'seat ' || id::text AS example
    FROM seats
    WHERE status NOT IN ('available', 'held', 'sold', 'blocked') OR version < 1
    UNION ALL
    SELECT 'checkout ' || id::text
    FROM checkouts
    WHERE status NOT IN ('pending_payment', 'processing', 'completed', 'failed', 'cancelled', 'expired', 'refunded')
       OR refund NOT IN ('none', 'owed', 'done')
    UNION ALL
    SELECT 'event ' || id::text
    FROM events
    WHERE status NOT IN ('draft', 'published', 'live', 'archived', 'cancelled')
) AS broken;
