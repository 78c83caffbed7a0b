//! The import of the earlier promptyoself's database, before the first command.

use api::{Code, Error};
use runtime::{Clock, SystemClock};
use tracing::warn;

use super::settings;
use crate::cli::schedule::import_promptyoself;
use crate::context::Context;

/// The file in the data directory that marks the database as imported.
const MARKER: &str = "promptyoself.imported";

/// Imports the database that the data directory was derived from. Only once, so that removed schedules do
/// not come back.
pub(super) async fn run(context: &Context) -> Result<(), Error> {
    let Some(database) = settings::database(&context.environment) else { return Ok(()) };
    let beside = settings::data_beside(&database);
    let is_derived = std::path::absolute(&beside).is_ok_and(|it| it == context.directory.path());
    let marker = context.directory.path().join(MARKER);
    if !is_derived || marker.exists() || !database.exists() {
        return Ok(());
    }
    let skipped = match import_promptyoself(context, &database, SystemClock.now()).await {
        Ok(skipped) => skipped,
        // The command works without the import, which is attempted again next time.
        Err(error) if error.code != Code::Failed => {
            warn!(%error, "failed to import the database of the earlier promptyoself");
            return Ok(());
        }
        Err(failed) => return Err(failed),
    };
    for entry in skipped {
        warn!(%entry, "did not import an entry of the earlier promptyoself");
    }
    context.directory.create()?;
    files::replace(&marker, &database.display().to_string()).map_err(|error| {
        let what = format!("`{}` cannot be written: {error}", marker.display());
        Error::new(Code::Failed, what).hint("check the permissions of the data directory")
    })
}
