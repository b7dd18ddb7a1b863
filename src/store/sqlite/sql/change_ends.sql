SELECT (SELECT min(id) FROM changes), (SELECT max(id) FROM changes);
