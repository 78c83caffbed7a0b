//! `midwatch ledger export`

use std::path::PathBuf;

use api::{Code, Error, LedgerExport};
use clap::Args;

use crate::access::send_with_progress;
use crate::cli::support::table::{shortened, table, whole};
use crate::context::Context;

/// Export the ledger to files, two per month
#[derive(Debug, Args)]
pub(in crate::cli) struct Export {
    /// The directory to write to [default: `exports` in the data directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) async fn run(context: &Context, export: Export) -> Result<(), Error> {
    // The daemon may have another working directory.
    let dir = export.dir.map(|dir| std::path::absolute(&dir).unwrap_or(dir));
    let dir = dir.map(|dir| dir.into_os_string().into_string()).transpose().map_err(|dir| {
        let what = format!("the path {dir:?} is not UTF-8");
        Error::new(Code::InvalidInput, what).hint("name a directory whose path is UTF-8")
    })?;
    let progress = context.output.progress("exporting");
    let request = LedgerExport { dir };
    let answer = send_with_progress(context, request, progress.sink()).await?;
    drop(progress);
    context.output.show(&answer, |answer| {
        let rows = answer.exports.iter().map(|export| {
            let entries = format!("{}–{}", export.first, export.last);
            let state = if export.written { "written" } else { "unchanged" };
            [export.month.clone(), entries, export.file.clone(), state.to_owned()]
        });
        let columns = [whole("MONTH"), whole("ENTRIES"), shortened("FILE", 16), whole("")];
        format!("{}\nin {}", table(&context.view, columns, rows), answer.dir)
    });
    Ok(())
}
