INSERT INTO organizations (id, name, created_at)
VALUES (?1, ?2, ?3);
