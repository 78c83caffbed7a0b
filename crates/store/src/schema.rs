//! Schema migrations, applied in order. A database records the hash of each migration, which reveals a
//! migration that was edited after its release.

use crate::port::Error;

/// One migration of the schema.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    pub sql: &'static str,
    /// The pinned hash of `sql`: a released migration is never edited.
    pub sha256: &'static str,
}

/// The number of applied migrations, after comparing the hashes that the database recorded.
pub fn count_applied(recorded: &[String], migrations: &[Migration]) -> Result<usize, Error> {
    for (index, (recorded, migration)) in recorded.iter().zip(migrations).enumerate() {
        if recorded != migration.sha256 {
            let number = index + 1;
            return Err(Error::Failed(format!(
                "migration {number} of the database differs from this program's"
            )));
        }
    }
    let count = |migrations: usize| u32::try_from(migrations).unwrap_or(u32::MAX);
    match recorded.len() <= migrations.len() {
        true => Ok(recorded.len()),
        false => {
            Err(Error::NewerFormat { found: count(recorded.len()), known: count(migrations.len()) })
        }
    }
}
