//! Where an installation keeps its data: in a file of its directory, or in a database elsewhere.

use std::path::PathBuf;
use std::sync::Arc;

use api::{Code, Error};
use kernel::backend::SecretRef;
use store::Store;
use store_postgres::{Postgres, Target};
use store_sqlite::Sqlite;

use crate::config::Config;
use crate::context::Context;
use crate::directory::Directory;

/// A secret file is not longer than this.
const SECRET_BYTES_MAX: usize = 64 << 10;

#[derive(Clone, Debug)]
pub enum Storage {
    File(PathBuf),
    Database(Box<Target>),
}

impl Storage {
    /// As the configuration says.
    pub fn of(context: &Context, config: &Config) -> Result<Storage, Error> {
        match &config.store.url {
            None => Ok(Storage::File(context.directory.database())),
            Some(url) => Ok(Storage::Database(Box::new(target(url, context, config)?))),
        }
    }

    /// Whether there is no watch in this directory yet. One that keeps its data elsewhere has its key
    /// here.
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
                    true => Err(left_behind(directory)),
                }
            }
        }
    }
}

/// The log would begin anew, under the key of another one.
fn left_behind(directory: &Directory) -> Error {
    let path = directory.database();
    let what = format!("the database is empty, and `{}` has the log of this watch", path.display());
    Error::new(Code::Exists, what).hint(
        "`midwatch store copy --from DIR --to URL` takes it along; to begin anew, use another \
         data directory",
    )
}

/// A database by its url, with the password and the certificates of the configuration.
pub fn target(url: &str, context: &Context, config: &Config) -> Result<Target, Error> {
    let secret = config.store.password.as_ref();
    let password = secret.map(|secret| read_secret(secret, context)).transpose()?;
    let target = Target::new(url, password.as_deref(), config.store.ca_file.as_deref());
    target.map_err(|invalid| Error::new(Code::InvalidInput, &invalid).hint(invalid.hint))
}

/// What a reference leads to. No message repeats it.
fn read_secret(secret: &SecretRef, context: &Context) -> Result<String, Error> {
    let found = match secret {
        SecretRef::Env(name) => context.environment.get(name).cloned(),
        SecretRef::File(path) => std::fs::read_to_string(path).ok(),
    };
    let secret_text = found.map(|text| text.trim_end_matches(['\r', '\n']).to_owned());
    secret_text.filter(|text| !text.is_empty() && text.len() <= SECRET_BYTES_MAX).ok_or_else(|| {
        let what = format!("there is no password at `{secret}`");
        Error::new(Code::ConfigInvalid, what).hint(
            "`store.password` names a variable or a file that holds it and that this user can read",
        )
    })
}
