//! Brings a database to the newest schema, step by step, once, whoever comes first. A step that was
//! applied is remembered with the hash of its text.

use std::time::Duration;

use store::Error;
use store::schema::{self, Step};
use tokio_postgres::{Client, GenericClient};

use crate::error::meaning;

/// Append only. A released step is never edited: its hash is pinned here.
const STEPS: &[Step] = &[
    Step {
        sql: include_str!("../migrations/0001_keel.sql"),
        sha256: "2b07b71a19871dfa57e0fe5afa621d845281337f8fcb1e496a4e94cb08cb0a7d",
    },
    Step {
        sql: include_str!("../migrations/0002_keys.sql"),
        sha256: "205e1af19ce53871208e76366b20b6998415f904c1d1012aaf9f10dcc38691fb",
    },
];

/// Of the lock that is held while steps are applied: "MWch".
const LOCK: i64 = 0x4d57_6368;
/// How long the steps that another process applies are waited for.
const MIGRATION_WAIT_MAX: Duration = Duration::from_secs(300);

/// Applies what is missing, in one transaction.
pub(crate) async fn migrate(client: &mut Client) -> Result<(), Error> {
    let transaction = client.transaction().await.map_err(meaning)?;
    let patience = format!("SET LOCAL lock_timeout = {}", MIGRATION_WAIT_MAX.as_millis());
    transaction.batch_execute(&patience).await.map_err(meaning)?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(meaning)?;
    let table =
        "CREATE TABLE IF NOT EXISTS migration (step integer PRIMARY KEY, sha256 text NOT NULL)";
    transaction.batch_execute(table).await.map_err(meaning)?;
    let applied = applied(&transaction).await?;
    for (index, step) in STEPS.iter().enumerate().skip(applied) {
        transaction.batch_execute(step.sql).await.map_err(meaning)?;
        let number = i32::try_from(index + 1).unwrap_or(i32::MAX);
        let insert = "INSERT INTO migration VALUES ($1, $2)";
        transaction.execute(insert, &[&number, &step.sha256]).await.map_err(meaning)?;
    }
    transaction.commit().await.map_err(meaning)
}

/// Refuses a database that this program cannot read as it is.
pub(crate) async fn check(client: &impl GenericClient) -> Result<(), Error> {
    let sql = "SELECT to_regclass('migration') IS NOT NULL";
    let exists: bool = client.query_one(sql, &[]).await.map_err(meaning)?.get(0);
    match exists && applied(client).await? == STEPS.len() {
        true => Ok(()),
        false => Err(Error::Failed(
            "the database is empty or has an older format; `midwatch up` brings it up to date"
                .into(),
        )),
    }
}

/// How many steps were applied, after checking that they are the ones known here.
async fn applied(client: &impl GenericClient) -> Result<usize, Error> {
    let rows = client.query("SELECT sha256 FROM migration ORDER BY step", &[]).await;
    let hashes: Vec<String> = rows.map_err(meaning)?.iter().map(|row| row.get(0)).collect();
    schema::applied(&hashes, STEPS)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn released_steps_are_as_they_were() {
        for (index, step) in STEPS.iter().enumerate() {
            let digest = Sha256::digest(step.sql);
            let found: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, step.sha256, "step {}: add a new step instead", index + 1);
        }
    }
}
