-- A layout of 100,000 seats may take longer than a transaction of holds.
SET LOCAL statement_timeout = 0; -- the writer's own limit holds: LAYOUT_MS_MAX
