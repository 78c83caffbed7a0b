-- Numbers the entries of all ended transactions, every 20 ms.
\sleep 20 ms
BEGIN;
SELECT sealed FROM head FOR UPDATE;
WITH ended AS (
    SELECT id, xact, row_number() OVER (ORDER BY xact, id) AS n, sha256(facts) AS hash FROM loose, head
    WHERE xact > head.sealed AND xact < pg_snapshot_xmin(pg_current_snapshot())
), placed AS (
    INSERT INTO seal SELECT head.size + n, id, hash FROM ended, head
)
UPDATE head SET size = size + (SELECT count(*) FROM ended), chain = sha256(chain),
                sealed = coalesce((SELECT xact FROM ended ORDER BY xact DESC LIMIT 1), sealed);
COMMIT;
