//! Migrates a database to the newest schema. The database records the hash of each applied migration,
//! see [`schema`].

use rusqlite::{Connection, OptionalExtension};
use store::Error;
use store::schema::{self, Migration};

use crate::error::classify;

/// Append only. A released migration is never edited: its hash is pinned here.
const MIGRATIONS: &[Migration] = &[
    Migration {
        sql: include_str!("../migrations/0001_keel.sql"),
        sha256: "1c099ba3d668de74b33680c23eecccf093e802ea07cdf1498a5b2a3766a90c09",
    },
    Migration {
        sql: include_str!("../migrations/0002_keys.sql"),
        sha256: "6d78f940586d411f580d8ba31396058d9ac1cc5bdc17708abecb7b288e80a00f",
    },
];

/// Marks the file as Midwatch's: "MWch".
const APPLICATION_ID: i32 = 0x4d57_6368;

/// Applies the missing migrations in one transaction.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), Error> {
    check_owner(connection)?;
    let applied = count_applied(connection)?;
    if applied == MIGRATIONS.len() {
        return Ok(());
    }
    let transaction = connection.transaction().map_err(classify)?;
    if applied == 0 {
        let sql = "CREATE TABLE migration (step INTEGER PRIMARY KEY, sha256 TEXT NOT NULL) STRICT";
        transaction.execute_batch(sql).map_err(classify)?;
    }
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(applied) {
        transaction.execute_batch(migration.sql).map_err(classify)?;
        transaction
            .execute(
                "INSERT INTO migration (step, sha256) VALUES (?1, ?2)",
                (index + 1, migration.sha256),
            )
            .map_err(classify)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(classify)?;
    transaction.commit().map_err(classify)
}

/// Refuses a database with another schema than this program's.
pub(crate) fn check(connection: &Connection) -> Result<(), Error> {
    check_owner(connection)?;
    match count_applied(connection)? {
        applied if applied == MIGRATIONS.len() => Ok(()),
        _ => Err(Error::Failed("the data has an older format; `midwatch up` migrates it".into())),
    }
}

fn check_owner(connection: &Connection) -> Result<(), Error> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let is_ours = pragma("application_id").map_err(classify)? == i64::from(APPLICATION_ID);
    let is_new = pragma("schema_version").map_err(classify)? == 0;
    match is_ours || is_new {
        true => Ok(()),
        false => Err(Error::Failed("the database belongs to another program".into())),
    }
}

/// The number of applied migrations, after checking that they are this program's.
fn count_applied(connection: &Connection) -> Result<usize, Error> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migration'";
    let exists = connection.query_row(sql, (), |_| Ok(())).optional().map_err(classify)?;
    if exists.is_none() {
        return Ok(0);
    }
    let mut statement =
        connection.prepare("SELECT sha256 FROM migration ORDER BY step").map_err(classify)?;
    let hashes = statement.query_map((), |row| row.get::<_, String>(0)).map_err(classify)?;
    let hashes = hashes.collect::<Result<Vec<_>, _>>().map_err(classify)?;
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

    #[test]
    fn migrating_twice_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        migrate(&mut connection).unwrap();
        check(&connection).unwrap();
    }

    #[test]
    fn rows_of_an_older_database_have_no_keys() {
        let mut connection = Connection::open_in_memory().unwrap();
        let first = &MIGRATIONS[0];
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
        let sql = "SELECT version FROM item WHERE due_us IS NULL AND under IS NULL";
        assert_eq!(connection.query_row(sql, (), |row| row.get::<_, i64>(0)), Ok(3));
    }

    #[test]
    fn newer_altered_and_foreign_databases_are_refused() {
        let altered = |sql: &str| {
            let mut connection = Connection::open_in_memory().unwrap();
            migrate(&mut connection).unwrap();
            connection.execute_batch(sql).unwrap();
            migrate(&mut connection).unwrap_err().to_string()
        };
        assert_eq!(
            altered("INSERT INTO migration VALUES (3, 'later')"),
            "the data has format 3, but this program supports formats up to 2"
        );
        assert_eq!(
            altered("UPDATE migration SET sha256 = 'x'"),
            "the store failed: migration 1 of the database differs from this program's"
        );
        assert_eq!(
            altered("PRAGMA application_id = 7"),
            "the store failed: the database belongs to another program"
        );
    }
}
