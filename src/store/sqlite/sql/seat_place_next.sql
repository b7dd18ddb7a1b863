SELECT coalesce(max(place), 0) + 1
FROM seats;
