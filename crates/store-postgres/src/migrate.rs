//! Migrates a database to the newest schema. An advisory lock lets one process migrate at a time. The
//! database records the hash of each applied migration, see [`schema`].

use std::time::Duration;

use store::Error;
use store::schema::{self, Migration};
use tokio_postgres::{Client, GenericClient};

use crate::error::classify;

/// Append only. A released migration is never edited: its hash is pinned here.
const MIGRATIONS: &[Migration] = &[
    Migration {
        sql: include_str!("../migrations/0001_keel.sql"),
        sha256: "2b07b71a19871dfa57e0fe5afa621d845281337f8fcb1e496a4e94cb08cb0a7d",
    },
    Migration {
        sql: include_str!("../migrations/0002_keys.sql"),
        sha256: "205e1af19ce53871208e76366b20b6998415f904c1d1012aaf9f10dcc38691fb",
    },
];

/// The advisory lock held while migrating: "MWch".
const MIGRATION_LOCK: i64 = 0x4d57_6368;
/// How long to wait for another process that migrates.
const MIGRATION_WAIT_MAX: Duration = Duration::from_secs(300);

/// Applies the missing migrations in one transaction.
pub(crate) async fn migrate(client: &mut Client) -> Result<(), Error> {
    let transaction = client.transaction().await.map_err(classify)?;
    let timeout = format!("SET LOCAL lock_timeout = {}", MIGRATION_WAIT_MAX.as_millis());
    transaction.batch_execute(&timeout).await.map_err(classify)?;
    transaction
        .execute("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK])
        .await
        .map_err(classify)?;
    let table =
        "CREATE TABLE IF NOT EXISTS migration (step integer PRIMARY KEY, sha256 text NOT NULL)";
    transaction.batch_execute(table).await.map_err(classify)?;
    let applied = count_applied(&transaction).await?;
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(applied) {
        transaction.batch_execute(migration.sql).await.map_err(classify)?;
        let number = i32::try_from(index + 1).unwrap_or(i32::MAX);
        let insert = "INSERT INTO migration VALUES ($1, $2)";
        transaction.execute(insert, &[&number, &migration.sha256]).await.map_err(classify)?;
    }
    transaction.commit().await.map_err(classify)
}

/// Refuses a database with another schema than this program's.
pub(crate) async fn check(client: &impl GenericClient) -> Result<(), Error> {
    let sql = "SELECT to_regclass('migration') IS NOT NULL";
    let exists: bool = client.query_one(sql, &[]).await.map_err(classify)?.get(0);
    match exists && count_applied(client).await? == MIGRATIONS.len() {
        true => Ok(()),
        false => Err(Error::Failed(
            "the database is empty or has an older format; `midwatch up` migrates it".into(),
        )),
    }
}

/// The number of applied migrations, after checking that they are this program's.
async fn count_applied(client: &impl GenericClient) -> Result<usize, Error> {
    let rows = client.query("SELECT sha256 FROM migration ORDER BY step", &[]).await;
    let hashes: Vec<String> = rows.map_err(classify)?.iter().map(|row| row.get(0)).collect();
    schema::count_applied(&hashes, MIGRATIONS)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn released_migrations_are_unchanged() {
        for (index, migration) in MIGRATIONS.iter().enumerate() {
            let digest = Sha256::digest(migration.sql);
            let found: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, migration.sha256, "migration {}: add a new one instead", index + 1);
        }
    }
}
