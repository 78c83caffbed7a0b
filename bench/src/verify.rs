//! Verifying a stored ledger, compared with computing its hashes in memory.

use std::path::Path;
use std::time::Instant;

use api::ProgressSink;
use ledger::verify::{Anchors, Verdict};
use ledger::{Chain, Draft, Header};
use store::{Commit, PAGE_ENTRIES_MAX, Store};
use store_sqlite::Sqlite;

use crate::spread;
use crate::store::open;

/// Entries in one commit while the ledger is written.
const COMMIT_ENTRIES: u64 = 1_000;

pub(crate) fn run(entries: u64, rounds: usize) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let data = tempfile::tempdir()?;
        write_ledger(data.path(), entries).await?;
        let store = Sqlite::open_read_only(&data.path().join("midwatch.db"))?;
        let mut pages = Vec::new();
        let mut after = 0;
        loop {
            let page = store.entries(after, PAGE_ENTRIES_MAX).await?;
            let Some(last) = page.last_seq() else { break };
            after = last;
            pages.push(page);
        }
        println!("\nverify: {after} entries, {rounds} rounds");
        let (mut ratios, mut ours) = (Vec::new(), Vec::new());
        for round in 1..=rounds {
            let started = Instant::now();
            let mut chain = Chain::empty();
            for page in &pages {
                for fields in page.iter() {
                    chain.verify_next(&fields)?;
                }
            }
            let hashing = started.elapsed().as_secs_f64();
            let started = Instant::now();
            let report =
                runtime::verify(&store, Anchors::default(), &ProgressSink::default()).await?;
            let verifying = started.elapsed().as_secs_f64();
            anyhow::ensure!(
                report.verdict == Verdict::Ok,
                "the ledger does not verify: {report:?}"
            );
            let ratio = verifying / hashing;
            println!(
                "round {round}: verify {verifying:.2} s  hashes {hashing:.2} s  ratio {ratio:.2}"
            );
            ratios.push(ratio);
            ours.push(verifying);
        }
        let (ratio, least, most) = spread(ratios);
        let (our, ..) = spread(ours);
        println!("median: verify {our:.2} s, ratio {ratio:.2} [{least:.2}–{most:.2}]");
        Ok(())
    })
}

/// Writes a ledger of heartbeats, signed every thousand entries.
pub(crate) async fn write_ledger(data: &Path, entries: u64) -> anyhow::Result<()> {
    let engine = open(data).await?;
    let store = engine.store();
    while store.head().await?.size() < entries {
        let size = store.head().await?.size();
        let count = COMMIT_ENTRIES.min(entries - size);
        let drafts = (0..count).map(|n| draft(size + n)).collect::<Result<_, _>>()?;
        store.commit(Commit { drafts, ..Commit::default() }).await?;
        engine.close().await?;
    }
    Ok(())
}

fn draft(number: u64) -> anyhow::Result<Draft> {
    let at = 1_794_771_785_426_889 + number as i64;
    let header = Header {
        ts_us: at,
        kind: "watch.heartbeat",
        version: 1,
        actor: "midwatch",
        role: "system",
        cause: &format!("key:uid:0/01a1e0bc-16cb-7734-9ad9-{number:012x}"),
        noun: "watch",
        noun_id: "cbe7b9d3-5bfb-47c4-a537-f6345986cc30",
    };
    Ok(Draft::new(header, b"{}".to_vec(), None)?)
}
