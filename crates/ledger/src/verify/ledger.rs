//! Verifies entries one by one, and the signed checkpoints among them.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::report::{Finding, Report};
use super::trust::{Anchors, SignedCheckpoint};
use super::verification::{Verification, shorter_than};
use crate::EntryRef;

/// Verifies a ledger in a data directory. It holds one entry, and the checkpoints of larger sizes.
#[derive(Debug)]
pub struct LedgerVerifier {
    verification: Verification,
    pending: BTreeMap<u64, Vec<SignedCheckpoint>>,
    finding: Option<Finding>,
}

impl LedgerVerifier {
    pub fn new(anchors: Anchors) -> LedgerVerifier {
        LedgerVerifier {
            verification: Verification::new(anchors),
            pending: BTreeMap::new(),
            finding: None,
        }
    }

    /// Adds a signed checkpoint. Must be called before the entry that follows the checkpoint, because
    /// earlier roots are not kept. Breaks at the first damage.
    pub fn checkpoint(&mut self, note: &str) -> ControlFlow<()> {
        self.advance(|it| it.add_checkpoint(note))
    }

    /// Verifies the next entry. Breaks at the first damage; then call [`LedgerVerifier::finish`].
    pub fn entry(&mut self, entry: &EntryRef<'_>) -> ControlFlow<()> {
        self.advance(|it| {
            it.verification.verify_entry(entry)?;
            it.check_due_checkpoints()
        })
    }

    pub fn finish(mut self) -> Report {
        let outcome = match self.finding.take() {
            Some(finding) => Err(finding),
            None => self.check_pending(),
        };
        self.verification.into_report(outcome)
    }

    fn advance(&mut self, step: impl FnOnce(&mut Self) -> Result<(), Finding>) -> ControlFlow<()> {
        if self.finding.is_none() {
            self.finding = step(self).err();
        }
        if self.finding.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn add_checkpoint(&mut self, note: &str) -> Result<(), Finding> {
        let parsed = SignedCheckpoint::parse(note);
        let checkpoint = parsed.map_err(|error| Finding::invalid_note("a checkpoint", &error))?;
        let (size, reached) = (checkpoint.unverified().size, self.verification.chain().size());
        if size < reached {
            let what = format!("the checkpoint of {size} entries comes after a larger one");
            return Err(Finding::unreadable(what).at(size));
        }
        self.pending.entry(size).or_default().push(checkpoint);
        self.check_due_checkpoints()
    }

    /// Checks the checkpoints of exactly the current size. A checkpoint of an empty ledger proves
    /// nothing, and its signer is not known yet.
    fn check_due_checkpoints(&mut self) -> Result<(), Finding> {
        let size = self.verification.chain().size();
        if size == 0 {
            return Ok(());
        }
        let Some(reached) = self.pending.remove(&size) else { return Ok(()) };
        self.compare_roots(size, &reached).map_err(|finding| finding.at(size))
    }

    fn compare_roots(&mut self, size: u64, reached: &[SignedCheckpoint]) -> Result<(), Finding> {
        let what = format!("the checkpoint of {size} entries");
        let mut roots = Vec::with_capacity(reached.len());
        for checkpoint in reached {
            roots.push(self.verification.verify_checkpoint(&what, checkpoint)?.root);
        }
        if roots.iter().any(|root| Some(root) != roots.first()) {
            let what = format!("two checkpoints of {size} entries have different roots");
            return Err(Finding::tampered(what));
        }
        let root = self.verification.chain().root();
        if roots.iter().any(|found| *found != root) {
            return Err(Finding::tampered(format!("{what} has a different root than the ledger")));
        }
        roots.iter().for_each(|_| self.verification.record_signature(size));
        Ok(())
    }

    fn check_pending(&mut self) -> Result<(), Finding> {
        let end = self.verification.chain().size();
        let Some((size, ahead)) = self.pending.range(end + 1..).next() else { return Ok(()) };
        let what = format!("the checkpoint of {size} entries");
        for checkpoint in ahead {
            self.verification
                .verify_checkpoint(&what, checkpoint)
                .map_err(|finding| finding.at(*size))?;
        }
        Err(shorter_than(self.verification.chain(), "a signed checkpoint", *size))
    }
}
