//! Brings a database to the newest schema, step by step. A step that was applied is remembered with
//! the hash of its text, so a step that was edited after its release is noticed on both sides.

use rusqlite::{Connection, OptionalExtension};
use store::Error;
use store::schema::{self, Step};

use crate::error::meaning;

/// Append only. A released step is never edited: its hash is pinned here.
const STEPS: &[Step] = &[
    Step {
        sql: include_str!("../migrations/0001_keel.sql"),
        sha256: "1c099ba3d668de74b33680c23eecccf093e802ea07cdf1498a5b2a3766a90c09",
    },
    Step {
        sql: include_str!("../migrations/0002_keys.sql"),
        sha256: "6d78f940586d411f580d8ba31396058d9ac1cc5bdc17708abecb7b288e80a00f",
    },
];

/// Marks the file as ours: "MWch".
const APPLICATION_ID: i32 = 0x4d57_6368;

/// Applies what is missing, in one transaction.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), Error> {
    check_owner(connection)?;
    let applied = applied(connection)?;
    if applied == STEPS.len() {
        return Ok(());
    }
    let transaction = connection.transaction().map_err(meaning)?;
    if applied == 0 {
        let sql = "CREATE TABLE migration (step INTEGER PRIMARY KEY, sha256 TEXT NOT NULL) STRICT";
        transaction.execute_batch(sql).map_err(meaning)?;
    }
    for (index, step) in STEPS.iter().enumerate().skip(applied) {
        transaction.execute_batch(step.sql).map_err(meaning)?;
        transaction
            .execute(
                "INSERT INTO migration (step, sha256) VALUES (?1, ?2)",
                (index + 1, step.sha256),
            )
            .map_err(meaning)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(meaning)?;
    transaction.commit().map_err(meaning)
}

/// Refuses a database that this program cannot read as it is.
pub(crate) fn check(connection: &Connection) -> Result<(), Error> {
    check_owner(connection)?;
    match applied(connection)? {
        steps if steps == STEPS.len() => Ok(()),
        _ => Err(Error::Failed(
            "the data has an older format; `midwatch up` brings it up to date".into(),
        )),
    }
}

fn check_owner(connection: &Connection) -> Result<(), Error> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let is_ours = pragma("application_id").map_err(meaning)? == i64::from(APPLICATION_ID);
    let is_new = pragma("schema_version").map_err(meaning)? == 0;
    match is_ours || is_new {
        true => Ok(()),
        false => Err(Error::Failed("the database belongs to another program".into())),
    }
}

/// How many steps were applied, after checking that they are the ones known here.
fn applied(connection: &Connection) -> Result<usize, Error> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migration'";
    let exists = connection.query_row(sql, (), |_| Ok(())).optional().map_err(meaning)?;
    if exists.is_none() {
        return Ok(0);
    }
    let mut statement =
        connection.prepare("SELECT sha256 FROM migration ORDER BY step").map_err(meaning)?;
    let hashes = statement.query_map((), |row| row.get::<_, String>(0)).map_err(meaning)?;
    let hashes = hashes.collect::<Result<Vec<_>, _>>().map_err(meaning)?;
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

    #[test]
    fn a_migrated_database_is_migrated_again_without_change() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        migrate(&mut connection).unwrap();
        check(&connection).unwrap();
    }

    #[test]
    fn rows_of_an_older_database_have_no_keys() {
        let mut connection = Connection::open_in_memory().unwrap();
        let first = &STEPS[0];
        connection
            .execute_batch(&format!(
                "CREATE TABLE migration (step INTEGER PRIMARY KEY, sha256 TEXT NOT NULL) STRICT;
                 INSERT INTO migration VALUES (1, '{}');
                 PRAGMA application_id = {APPLICATION_ID}; {}
                 INSERT INTO item VALUES ('agent', 'ada', 3, x'7b7d')",
                first.sha256, first.sql
            ))
            .unwrap();
        migrate(&mut connection).unwrap();
        let kept = "SELECT version FROM item WHERE due_us IS NULL AND under IS NULL";
        assert_eq!(connection.query_row(kept, (), |row| row.get::<_, i64>(0)), Ok(3));
    }

    #[test]
    fn a_newer_an_altered_and_a_foreign_database_are_refused() {
        let altered = |sql: &str| {
            let mut connection = Connection::open_in_memory().unwrap();
            migrate(&mut connection).unwrap();
            connection.execute_batch(sql).unwrap();
            migrate(&mut connection).unwrap_err().to_string()
        };
        assert_eq!(
            altered("INSERT INTO migration VALUES (3, 'later')"),
            "the data has format 3, this program knows formats up to 2"
        );
        assert_eq!(
            altered("UPDATE migration SET sha256 = 'x'"),
            "the store failed: step 1 of the schema is not the one known here"
        );
        assert_eq!(
            altered("PRAGMA application_id = 7"),
            "the store failed: the database belongs to another program"
        );
    }
}
