//! `midwatch ledger rebuild --from-export`: recreates a data directory from exported files.

use std::path::PathBuf;

use api::Error;
use runtime::RestoredKey;
use serde::Serialize;

use super::{parse_keys, render_caveats};
use crate::access::directory_in_use;
use crate::cli::support::render::entries;
use crate::cli::support::restore_store::{LedgerSource, restore_store};
use crate::context::Context;
use crate::view::View;

#[derive(Debug, Serialize)]
struct RestoredAnswer {
    restored: Restored,
}

#[derive(Debug, Serialize)]
struct Restored {
    entries: u64,
    head: String,
    /// False: a new key was created, and an event records it.
    key_kept: bool,
    /// The new key.
    #[serde(skip_serializing_if = "Option::is_none")]
    new_key: Option<String>,
    caveats: Vec<String>,
}

pub(super) async fn run(context: &Context, dir: PathBuf, vkeys: &[String]) -> Result<(), Error> {
    let directory = &context.directory;
    directory.create()?;
    let lock = directory.try_lock()?.ok_or_else(|| directory_in_use(directory))?;
    let storage = context.storage()?;
    let keys = parse_keys(vkeys)?;
    let progress = context.output.progress("recreating");
    let settings = context.settings(&context.load_config()?.config);
    let source = LedgerSource { exports: dir, keys, settings };
    let (report, key) = restore_store(directory, &storage, source, &progress.sink()).await?;
    drop((progress, lock));
    let new_key = match key {
        RestoredKey::Kept => None,
        RestoredKey::Replaced { new } => Some(new),
    };
    let restored = Restored {
        entries: report.entries,
        head: report.head.to_string(),
        key_kept: new_key.is_none(),
        new_key,
        caveats: report.caveats,
    };
    context
        .output
        .say(&RestoredAnswer { restored }, |answer| render(&answer.restored, &context.view));
    Ok(())
}

fn render(restored: &Restored, view: &View) -> String {
    let key = match &restored.new_key {
        None => "the existing signing key was kept".to_owned(),
        Some(new) => format!(
            "no signing key was found, so a new one was created and recorded in the ledger\n\
             public key: {new}"
        ),
    };
    let caveats = render_caveats(&restored.caveats, view);
    format!("recreated {}; {key}{caveats}", entries(restored.entries))
}
