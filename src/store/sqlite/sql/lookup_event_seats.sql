SELECT id
FROM seats
WHERE place >= ?1 AND place < ?1 + ?2
ORDER BY place;
