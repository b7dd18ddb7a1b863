-- Counted, not taken from the statistics: this is what the other tiers are compared with.
SELECT count(*)
FROM layouts AS l
JOIN seats AS s ON s.place >= l.place_first AND s.place < l.place_first + l.seat_count
JOIN seat_holds AS h INDEXED BY seat_holds_active
    ON h.organization_id = s.organization_id AND h.seat_id = s.id AND h.status = 'active'
WHERE l.organization_id = ?1 AND l.event_id = ?2;
