-- What the server is like. The time is in milliseconds since 1970.
SELECT
    current_setting('fsync'), current_setting('synchronous_commit'), current_setting('server_encoding'),
    current_setting('server_version_num'), (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text;
