//! The store of an installation: a SQLite file in its data directory, or a PostgreSQL database.

use std::path::PathBuf;
use std::sync::Arc;

use api::{Code, Error};
use store::Store;
use store_postgres::{Postgres, Target};
use store_sqlite::Sqlite;

use crate::config::Config;
use crate::context::Context;
use crate::directory::Directory;
use crate::secret;

#[derive(Clone, Debug)]
pub enum Storage {
    File(PathBuf),
    Database(Box<Target>),
}

impl Storage {
    /// The store that the configuration names.
    pub fn of(context: &Context, config: &Config) -> Result<Storage, Error> {
        match &config.store.url {
            None => Ok(Storage::File(context.directory.database())),
            Some(url) => {
                // A stop is not refused for it: it leaves a marker.
                let in_config = |error| Error { code: Code::ConfigInvalid, ..error };
                let target = target(url, context, config).map_err(in_config)?;
                Ok(Storage::Database(Box::new(target)))
            }
        }
    }

    /// Whether this directory has no installation yet. One whose data is in a database still has its key here.
    pub fn is_missing(&self, directory: &Directory) -> Result<bool, Error> {
        match self {
            Storage::File(_) => directory.has_database().map(|has| !has),
            Storage::Database(_) => directory.has_key().map(|has| !has),
        }
    }

    pub async fn open(&self, directory: &Directory) -> Result<Arc<dyn Store>, Error> {
        match self {
            Storage::File(path) => Ok(Arc::new(Sqlite::open(path).map_err(runtime::store_error)?)),
            Storage::Database(target) => {
                let store = Postgres::open(target).await.map_err(runtime::store_error)?;
                let is_empty = store.head().await.map_err(runtime::store_error)?.size() == 0;
                match is_empty && directory.database().exists() {
                    false => Ok(Arc::new(store)),
                    true => Err(database_is_empty(directory)),
                }
            }
        }
    }
}

/// A new ledger would start in the database, under the key of the ledger in the file.
fn database_is_empty(directory: &Directory) -> Error {
    let path = directory.database();
    let what =
        format!("the database is empty, but `{}` has this installation's ledger", path.display());
    Error::new(Code::Exists, what).hint(
        "copy it with `midwatch store copy --from DIR --to URL`, or start over in another data \
         directory",
    )
}

/// The database at a url, with the password and the certificates of the configuration.
pub fn target(url: &str, context: &Context, config: &Config) -> Result<Target, Error> {
    let secret = config.store.password.as_ref();
    let read = |reference| secret::read(reference, "store.password", context);
    let password = secret.map(read).transpose()?;
    let target = Target::new(url, password.as_deref(), config.store.ca_file.as_deref());
    target.map_err(|invalid| Error::new(Code::InvalidInput, &invalid).hint(invalid.hint))
}
