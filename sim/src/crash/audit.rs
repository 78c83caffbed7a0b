//! Audits a data directory that no process owns: is every acknowledged change in the ledger exactly once, and do the tables
//! match the ledger?
//!
//! It reads only the entries that are new since the last cycle. It shares with the program under test only the chain, the
//! fold over events, and the formats.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use api::ProgressSink;
use kernel::installation::Event;
use kernel::{Actor, EventBody, Tables};
use ledger::verify::{Anchors, SignedCheckpoint, Verdict};
use ledger::{Chain, Hash, VerifyingKey};
use store::{Item, PAGE_ENTRIES_MAX, Store};
use store_sqlite::Sqlite;

use super::daemon::Program;
use super::database::Database;
use super::writers::{CallResult, FinishedCall};
use crate::fold::{decode, derived};

/// Checkpoints read at once.
const NOTES_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Audit {
    data: PathBuf,
    /// The database that holds the ledger, if the data directory does not.
    database: Option<Arc<Database>>,
    /// The prefix of the cause of our entries; the key of the call follows.
    cause_prefix: String,
    /// The ledger as far as it was read.
    chain: Chain,
    tables: Tables,
    /// The keys of our calls in the ledger.
    keys: HashSet<String>,
    /// The signing keys, from the first entry.
    signers: Vec<VerifyingKey>,
    /// The roots of the verified checkpoints, by size.
    roots: BTreeMap<u64, Hash>,
    pub(super) lost: u64,
    pub(super) doubled: u64,
}

impl Audit {
    pub(super) fn new(program: &Program) -> Audit {
        let user = Actor::local_user(rustix::process::getuid().as_raw());
        Audit {
            data: program.data(),
            database: program.database.clone(),
            cause_prefix: format!("key:{}/", user.name()),
            chain: Chain::empty(),
            tables: Tables::default(),
            keys: HashSet::new(),
            signers: Vec::new(),
            roots: BTreeMap::new(),
            lost: 0,
            doubled: 0,
        }
    }

    pub(super) fn entries(&self) -> u64 {
        self.chain.size()
    }

    pub(super) fn checkpoints(&self) -> usize {
        self.roots.len()
    }

    /// The tables that follow from the ledger as far as it was read.
    pub(super) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(super) fn is_recorded(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    /// Checks the new entries after a cycle with these calls.
    pub(super) async fn check(&mut self, calls: &[FinishedCall]) -> Result<()> {
        let mut new = HashMap::new();
        if let Some(store) = self.open().await? {
            self.read_new_entries(&*store, &mut new).await?;
            self.check_tables(&*store).await?;
            self.check_file()?;
        }
        self.check_acknowledgements(calls, new)
    }

    /// Verifies the whole ledger from the signing key and the checkpoints alone.
    pub(super) async fn check_all(&self) -> Result<()> {
        let Some(store) = self.open().await? else { return Ok(()) };
        store.check_files().await?;
        let checkpoints = runtime::read_notes(&self.notes())?;
        let anchors = Anchors { keys: self.signers.clone(), checkpoints, own_checkpoints: None };
        let report = runtime::verify(&*store, anchors, &ProgressSink::default()).await?;
        ensure!(report.verdict == Verdict::Ok, "the ledger does not verify: {:?}", report.damage);
        ensure!(report.root == self.chain.root(), "entries changed after they were read");
        Ok(())
    }

    /// `None` until a start has created the database.
    async fn open(&self) -> Result<Option<Box<dyn Store>>> {
        let opened: Result<Box<dyn Store>> = match &self.database {
            Some(database) => database.open().await.map(|store| Box::new(store) as _),
            None => match Sqlite::open_read_only(&self.data.join("midwatch.db")) {
                Ok(store) => Ok(Box::new(store)),
                Err(error) => Err(error.into()),
            },
        };
        match opened {
            Err(_) if self.chain.size() == 0 => Ok(None),
            other => Ok(Some(other.context("the store cannot be opened")?)),
        }
    }

    /// Checks that every new entry continues the chain, can be decoded, and has a new key.
    async fn read_new_entries(
        &mut self,
        store: &dyn Store,
        new: &mut HashMap<String, EventBody>,
    ) -> Result<()> {
        let mut notes = self.new_notes(store).await?;
        let mut twice = Vec::new();
        loop {
            let page = store.entries(self.chain.size(), PAGE_ENTRIES_MAX).await?;
            if page.is_empty() {
                break;
            }
            for fields in page.iter() {
                self.chain.verify_next(&fields)?;
                let body = decode(&fields)?;
                self.tables.apply(&body);
                self.check_installation_event(&body)?;
                if let Some(note) = notes.remove(&self.chain.size()) {
                    self.check_note(&note)?;
                }
                let Some(key) = fields.cause.strip_prefix(&self.cause_prefix) else { continue };
                if !self.keys.insert(key.to_owned()) {
                    twice.push(key.to_owned());
                }
                new.insert(key.to_owned(), body);
            }
        }
        let (end, ahead) = (self.chain.size(), notes.keys().next());
        ensure!(
            ahead.is_none(),
            "the ledger ends at {end}, and a checkpoint has {ahead:?} entries"
        );
        self.doubled = twice.len() as u64;
        ensure!(twice.is_empty(), "{} changes were made twice: {twice:?}", twice.len());
        Ok(())
    }

    async fn new_notes(&self, store: &dyn Store) -> Result<BTreeMap<u64, String>> {
        let mut after = self.roots.last_key_value().map_or(0, |(size, _)| *size);
        let mut notes = BTreeMap::new();
        loop {
            let page = store.checkpoint_notes(after, NOTES_MAX).await?;
            let Some((last, _)) = page.last() else { return Ok(notes) };
            after = *last;
            notes.extend(page);
        }
    }

    /// Learns the signing key, and checks that the daemon never had to repair tables.
    fn check_installation_event(&mut self, body: &EventBody) -> Result<()> {
        match body {
            EventBody::Installation(_, Event::Genesis(it)) => {
                self.signers.push(VerifyingKey::parse(&it.key)?)
            }
            EventBody::Installation(_, Event::Rebuilt(it)) => {
                ensure!(it.differences == 0, "the daemon found wrong tables: {it:?}")
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks a checkpoint against the ledger as far as it was read.
    fn check_note(&mut self, note: &str) -> Result<()> {
        let size = self.chain.size();
        let signed = ledger::open_checkpoint(note, &self.signers)
            .with_context(|| format!("the checkpoint of {size} entries"))?;
        let matches = signed.size == size && signed.root == self.chain.root();
        ensure!(matches, "the checkpoint of {size} entries is not of this ledger");
        self.roots.insert(size, signed.root);
        Ok(())
    }

    /// Checks that the store also has the last note of the checkpoint file: the store is written first.
    fn check_file(&self) -> Result<()> {
        let Some(note) = self.last_note()? else { return Ok(()) };
        let signed = note.verify(&self.signers).context("the last note in the checkpoint file")?;
        let known = self.roots.get(&signed.size);
        ensure!(known == Some(&signed.root), "the last note in the file is not of this ledger");
        Ok(())
    }

    fn last_note(&self) -> Result<Option<SignedCheckpoint>> {
        Ok(runtime::read_last_note(&self.notes())?)
    }

    fn notes(&self) -> PathBuf {
        self.data.join("checkpoints.log")
    }

    async fn check_tables(&self, store: &dyn Store) -> Result<()> {
        let (stored, folded) =
            (store.load_derived().await?, derived(&self.tables, self.chain.size())?);
        if stored == folded {
            return Ok(());
        }
        let differs = |item: &&Item| !folded.items.contains(item);
        let first = stored.items.iter().find(differs);
        bail!("the tables differ from the ledger: {first:?}, counters {:?}", stored.counters)
    }

    /// Checks that acknowledged changes are in the ledger, refused ones are not, and every entry belongs to a call.
    fn check_acknowledgements(
        &mut self,
        calls: &[FinishedCall],
        mut new: HashMap<String, EventBody>,
    ) -> Result<()> {
        let mut lost = Vec::new();
        for FinishedCall { call, result } in calls {
            let key = &call.key;
            match (result, self.is_recorded(key)) {
                (CallResult::Acknowledged(_), false) => lost.push(key),
                (CallResult::Refused, true) => bail!("`{key}` was refused, and is in the ledger"),
                (CallResult::Acknowledged(_), true) | (CallResult::Refused, false) => {}
                (CallResult::Unanswered, _) => {}
            }
            if let Some(body) = new.remove(key) {
                ensure!(call.matches_entry(&body), "{call:?} became {body:?}");
            }
        }
        self.lost = lost.len() as u64;
        ensure!(
            lost.is_empty(),
            "{} acknowledged changes are not in the ledger: {lost:?}",
            lost.len()
        );
        ensure!(new.is_empty(), "no call of this cycle made {:?}", new.keys());
        Ok(())
    }
}
