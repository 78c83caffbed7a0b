-- The same rows in one round trip; the entries have no number yet.
\startpipeline
BEGIN;
UPDATE item SET version = version + 1, body = sha256(body)
FROM generate_series(1, :group::integer) AS n WHERE noun = 'agent' AND id = 'c' || :client_id || '-' || n;
INSERT INTO answer SELECT gen_random_uuid()::text, sha256('r'), repeat('a', 300)::bytea, 0
FROM generate_series(1, :group::integer);
INSERT INTO loose (ts_us, kind, version, actor, role, cause, noun, noun_id, facts)
SELECT 0, 'agent_changed', 1, 'local:1000', 'maintainer', 'cli', 'agent', 'c-' || n, repeat('f', 200)::bytea
FROM generate_series(1, :group::integer) AS n;
COMMIT;
\endpipeline
