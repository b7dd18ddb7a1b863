-- All that this snapshot does not show is in transactions from this one on.
SELECT oldest_open
FROM feed;
