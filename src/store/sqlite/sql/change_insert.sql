INSERT INTO changes (created_at, data)
VALUES (?1, ?2);
