-- Nothing points to something that does not exist.
SELECT count(*), min(example)
FROM (
    SELECT 'event ' || e.id::text AS example
    FROM events AS e
    WHERE NOT EXISTS (SELECT 1 FROM organizations AS o WHERE o.id = e.organization_id)
    UNION ALL
    SELECT 'user ' || u.id::text
    FROM users AS u
    WHERE NOT EXISTS (SELECT 1 FROM organizations AS o WHERE o.id = u.organization_id)
    UNION ALL
    SELECT 'layout of event ' || l.event_id::text
    FROM layouts AS l
    WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.organization_id = l.organization_id AND e.id = l.event_id)
    UNION ALL
    SELECT 'block ' || b.id::text
    FROM blocks AS b
    WHERE NOT EXISTS (
        SELECT 1 FROM layouts AS l WHERE l.organization_id = b.organization_id AND l.event_id = b.event_id)
    UNION ALL
    SELECT 'seat ' || s.id::text
    FROM seats AS s
    WHERE NOT EXISTS (
        SELECT 1 FROM blocks AS b
        WHERE b.organization_id = s.organization_id AND b.event_id = s.event_id AND b.id = s.block_id)
       OR NOT EXISTS (
        SELECT 1 FROM layouts AS l WHERE l.organization_id = s.organization_id AND l.event_id = s.event_id)
    UNION ALL
    SELECT 'hold ' || h.id::text
    FROM seat_holds AS h
    WHERE NOT EXISTS (
        SELECT 1 FROM seats AS s
        WHERE s.organization_id = h.organization_id AND s.id = h.seat_id AND s.event_id = h.event_id)
       OR (h.checkout_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM checkouts AS c
        WHERE c.organization_id = h.organization_id AND c.id = h.checkout_id AND c.event_id = h.event_id))
       OR NOT EXISTS (SELECT 1 FROM users AS u WHERE u.organization_id = h.organization_id AND u.id = h.user_id)
    UNION ALL
    SELECT 'checkout ' || c.id::text
    FROM checkouts AS c
    WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.organization_id = c.organization_id AND e.id = c.event_id)
       OR NOT EXISTS (SELECT 1 FROM users AS u WHERE u.organization_id = c.organization_id AND u.id = c.user_id)
    UNION ALL
    SELECT 'ticket ' || t.id::text
    FROM tickets AS t
    WHERE NOT EXISTS (
        SELECT 1 FROM seat_holds AS h
        WHERE h.organization_id = t.organization_id AND h.id = t.seat_hold_id AND h.seat_id = t.seat_id)
       OR NOT EXISTS (
        SELECT 1 FROM checkouts AS c WHERE c.organization_id = t.organization_id AND c.id = t.checkout_id)
    UNION ALL
    SELECT 'statistics of block ' || t.block_id::text
    FROM subsection_stats AS t
    WHERE NOT EXISTS (
        SELECT 1 FROM blocks AS b
        WHERE b.organization_id = t.organization_id AND b.event_id = t.event_id AND b.id = t.block_id)
) AS broken;
