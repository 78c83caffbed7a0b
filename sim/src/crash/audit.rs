//! The audit of a data directory that no process holds: is everything in the log that was promised,
//! once, and do the tables say what the log says?
//!
//! It follows the log from cycle to cycle and reads only what is new. Nothing of it comes from the
//! program under test but the rules that a log is made by: the chain, the fold over events, and the
//! formats.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use api::ProgressSink;
use kernel::watch::Event;
use kernel::{Actor, Body, Tables};
use ledger::verify::{Anchors, SignedCheckpoint, Verdict};
use ledger::{Chain, Hash, VerifyingKey};
use store::{Item, PAGE_ENTRIES_MAX, Store};
use store_sqlite::Sqlite;

use super::daemon::Program;
use super::database::Database;
use super::writers::{Ending, Made};
use crate::fold::{decode, derived};

/// Checkpoints read at once.
const NOTES_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Audit {
    data: PathBuf,
    /// Where the log is, if it is not there.
    database: Option<Arc<Database>>,
    /// What the cause of our entries begins with; our key follows.
    cause_prefix: String,
    /// The log as it was when it was last looked at.
    chain: Chain,
    tables: Tables,
    /// Every key of ours in the log.
    keys: HashSet<String>,
    /// Who signs the log, by its first entry.
    signers: Vec<VerifyingKey>,
    /// The roots of the checkpoints that were found good, by size.
    roots: BTreeMap<u64, Hash>,
    pub(super) lost: u64,
    pub(super) doubled: u64,
}

impl Audit {
    pub(super) fn new(program: &Program) -> Audit {
        let us = Actor::local_user(rustix::process::getuid().as_raw());
        Audit {
            data: program.data(),
            database: program.database.clone(),
            cause_prefix: format!("key:{}/", us.name),
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

    /// What the log says, as far as it was followed.
    pub(super) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    /// Looks at what is new, after a cycle in which these calls were made.
    pub(super) async fn check(&mut self, made: &[Made]) -> Result<()> {
        let mut new = HashMap::new();
        if let Some(store) = self.open().await? {
            self.follow(&*store, &mut new).await?;
            self.check_tables(&*store).await?;
            self.check_file()?;
        }
        self.check_promises(made, new)
    }

    /// Looks at everything, as somebody does who knows only the key and the checkpoints.
    pub(super) async fn check_all(&self) -> Result<()> {
        let Some(store) = self.open().await? else { return Ok(()) };
        store.check_files().await?;
        let checkpoints = runtime::notes(&self.notes())?;
        let anchors = Anchors { keys: self.signers.clone(), checkpoints };
        let report = runtime::verify(&*store, anchors, &ProgressSink::default()).await?;
        ensure!(report.verdict == Verdict::Ok, "the log does not verify: {:?}", report.damage);
        ensure!(report.root == self.chain.root(), "entries changed after they were looked at");
        Ok(())
    }

    /// `None` as long as no start got as far as making the database.
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

    /// Every new entry: in its place, understood, with a key that was not there before.
    async fn follow(&mut self, store: &dyn Store, new: &mut HashMap<String, Body>) -> Result<()> {
        let mut notes = self.new_notes(store).await?;
        let mut twice = Vec::new();
        loop {
            let page = store.entries(self.chain.size(), PAGE_ENTRIES_MAX).await?;
            if page.is_empty() {
                break;
            }
            for fields in page.iter() {
                self.chain.check(&fields)?;
                let body = decode(&fields)?;
                self.tables.apply(&body);
                self.listen(&body)?;
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
        ensure!(ahead.is_none(), "the log ends at {end}, and a checkpoint is of {ahead:?} entries");
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

    /// What the daemon says about itself: who signs, and that it never had tables to mend.
    fn listen(&mut self, body: &Body) -> Result<()> {
        match body {
            Body::Watch(_, Event::Genesis(it)) => self.signers.push(VerifyingKey::parse(&it.key)?),
            Body::Watch(_, Event::Rebuilt(it)) => {
                ensure!(it.differences == 0, "the daemon found wrong tables: {it:?}")
            }
            Body::Watch(..) | Body::Agent(..) | Body::Authority(..) => {}
            Body::Schedule(..) | Body::Token(..) | Body::Tool(..) => {}
            Body::Run(..) | Body::Approval(..) => {}
        }
        Ok(())
    }

    /// A checkpoint of the log as far as it was followed.
    fn check_note(&mut self, note: &str) -> Result<()> {
        let size = self.chain.size();
        let signed = ledger::open(note, &self.signers)
            .with_context(|| format!("the checkpoint of {size} entries"))?;
        let fits = signed.size == size && signed.root == self.chain.root();
        ensure!(fits, "the checkpoint of {size} entries is not of this log");
        self.roots.insert(size, signed.root);
        Ok(())
    }

    /// The last note beside the database must be of this log. Its like is in the store, which is
    /// written first.
    fn check_file(&self) -> Result<()> {
        let Some(note) = self.last_note()? else { return Ok(()) };
        let signed = note.verify(&self.signers).context("the last note in the checkpoint file")?;
        let known = self.roots.get(&signed.size);
        ensure!(known == Some(&signed.root), "the last note in the file is not of this log");
        Ok(())
    }

    fn last_note(&self) -> Result<Option<SignedCheckpoint>> {
        Ok(runtime::last_note(&self.notes())?)
    }

    fn notes(&self) -> PathBuf {
        self.data.join("checkpoints.log")
    }

    async fn check_tables(&self, store: &dyn Store) -> Result<()> {
        let (stored, folded) = (store.derived().await?, derived(&self.tables, self.chain.size())?);
        if stored == folded {
            return Ok(());
        }
        let differs = |item: &&Item| !folded.items.contains(item);
        let first = stored.items.iter().find(differs);
        bail!("the tables are not what the log says: {first:?}, counters {:?}", stored.counters)
    }

    /// What was acknowledged is there, what was refused is not, and nothing is there that nobody
    /// asked for.
    fn check_promises(&mut self, made: &[Made], mut new: HashMap<String, Body>) -> Result<()> {
        let mut lost = Vec::new();
        for Made { attempt, ending } in made {
            let key = &attempt.key;
            match (ending, self.has(key)) {
                (Ending::Acknowledged(_), false) => lost.push(key),
                (Ending::Refused, true) => bail!("`{key}` was refused, and is in the log"),
                (Ending::Acknowledged(_), true) | (Ending::Refused, false) => {}
                (Ending::Unanswered, _) => {}
            }
            if let Some(body) = new.remove(key) {
                ensure!(attempt.fits_entry(&body), "{attempt:?} became {body:?}");
            }
        }
        self.lost = lost.len() as u64;
        ensure!(
            lost.is_empty(),
            "{} acknowledged changes are not in the log: {lost:?}",
            lost.len()
        );
        ensure!(new.is_empty(), "nobody asked for {:?} in this cycle", new.keys());
        Ok(())
    }
}
