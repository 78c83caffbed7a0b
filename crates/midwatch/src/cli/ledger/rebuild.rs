//! `midwatch ledger rebuild`

use std::path::PathBuf;

use api::{Error, LedgerRebuild, TablesRebuilt};
use clap::Args;

use super::restore;
use crate::access::send_with_progress;
use crate::cli::support::render::{count_of, entries};
use crate::context::Context;

/// Rebuild every derived table from the ledger
#[derive(Debug, Args)]
pub(in crate::cli) struct Rebuild {
    /// Recreate the whole data directory from exported files
    #[arg(long, value_name = "DIR")]
    from_export: Option<PathBuf>,
    /// A public key that must have signed them; repeat it if there were several [default: those
    /// that the ledger names]
    #[arg(long, value_name = "KEY", requires = "from_export")]
    vkey: Vec<String>,
}

pub(super) async fn run(context: &Context, rebuild: Rebuild) -> Result<(), Error> {
    match rebuild.from_export {
        Some(dir) => restore::run(context, dir, &rebuild.vkey).await,
        None => rebuild_tables(context).await,
    }
}

async fn rebuild_tables(context: &Context) -> Result<(), Error> {
    let progress = context.output.progress("rebuilding");
    let answer = send_with_progress(context, LedgerRebuild {}, progress.sink()).await?;
    drop(progress);
    context.output.say(&answer, |TablesRebuilt { rebuilt }| {
        let found = match rebuilt.differences {
            0 => "the tables agreed with the ledger".to_owned(),
            count => {
                format!("{} from the ledger", count_of(count, "row differed", "rows differed"))
            }
        };
        let rows = count_of(rebuilt.rows, "row", "rows");
        format!("rebuilt {rows} from {}; {found}", entries(rebuilt.entries))
    });
    Ok(())
}
