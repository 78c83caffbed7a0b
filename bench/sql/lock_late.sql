-- Like the store: write rows, lock the end of the ledger, insert the entries, commit.
\startpipeline
BEGIN;
UPDATE item SET version = version + 1, body = sha256(body)
FROM generate_series(1, :group::integer) AS n WHERE noun = 'agent' AND id = 'c' || :client_id || '-' || n;
INSERT INTO answer SELECT gen_random_uuid()::text, sha256('r'), repeat('a', 300)::bytea, 0
FROM generate_series(1, :group::integer);
SELECT chain FROM head FOR UPDATE;
\endpipeline
\startpipeline
INSERT INTO entry SELECT size + n, 0, 'agent_changed', 1, 'local:1000', 'maintainer', 'cli', 'agent', 'c-' || n,
                         repeat('f', 200)::bytea, sha256('h')
FROM head, generate_series(1, :group::integer) AS n;
UPDATE head SET size = size + :group::integer, chain = sha256(chain);
COMMIT;
\endpipeline
