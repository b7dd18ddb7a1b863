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
       OR refund NOT IN ('none', 'owed', 'done') OR version < 1
    UNION ALL
    SELECT 'event ' || id::text
    FROM events
    WHERE status NOT IN ('draft', 'published', 'live', 'archived', 'cancelled') OR version < 1
    UNION ALL
    SELECT 'delivery ' || name
    FROM deliveries
    WHERE version < 1 OR position_from < 0 OR position_to < 0 OR position_id < 0
    UNION ALL
    SELECT 'partition ' || partition::text || ' of ' || topic
    FROM order_partitions
    WHERE epoch < 1 OR next_offset < 0
) AS broken;
