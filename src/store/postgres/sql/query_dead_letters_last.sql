SELECT coalesce(max(number), 0)
FROM dead_letters;
