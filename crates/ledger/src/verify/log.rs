//! Verifies entries that are fed one by one, with the checkpoints that were signed on the way.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::report::{Finding, Report};
use super::trust::{Anchors, SignedCheckpoint};
use super::walk::{Walk, too_short};
use crate::Fields;

/// Holds one entry at a time, and the checkpoints that the log has not reached yet.
#[derive(Debug)]
pub struct LogVerifier {
    walk: Walk,
    ahead: BTreeMap<u64, Vec<SignedCheckpoint>>,
    finding: Option<Finding>,
}

impl LogVerifier {
    pub fn new(anchors: Anchors) -> LogVerifier {
        LogVerifier { walk: Walk::new(anchors), ahead: BTreeMap::new(), finding: None }
    }

    /// A signed note that the log must agree with. It is due before the entry that follows it:
    /// roots of the past are not kept. Breaks off as [`LogVerifier::entry`] does.
    pub fn checkpoint(&mut self, note: &str) -> ControlFlow<()> {
        self.proceed(|it| it.take_checkpoint(note))
    }

    /// The next entry. Breaks off at the first damage; then only [`LogVerifier::finish`] is left.
    pub fn entry(&mut self, fields: &Fields<'_>) -> ControlFlow<()> {
        self.proceed(|it| {
            it.walk.entry(fields)?;
            it.check_reached()
        })
    }

    pub fn finish(mut self) -> Report {
        let outcome = match self.finding.take() {
            Some(finding) => Err(finding),
            None => self.check_ahead(),
        };
        self.walk.conclude(outcome)
    }

    fn proceed(&mut self, step: impl FnOnce(&mut Self) -> Result<(), Finding>) -> ControlFlow<()> {
        if self.finding.is_none() {
            self.finding = step(self).err();
        }
        if self.finding.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn take_checkpoint(&mut self, note: &str) -> Result<(), Finding> {
        let parsed = SignedCheckpoint::parse(note);
        let checkpoint = parsed.map_err(|error| Finding::note("a checkpoint", &error))?;
        let (size, reached) = (checkpoint.unverified().size, self.walk.chain().size());
        if size < reached {
            let what = format!("the checkpoint of {size} entries stands after one of more entries");
            return Err(Finding::unreadable(what).at(size));
        }
        self.ahead.entry(size).or_default().push(checkpoint);
        self.check_reached()
    }

    /// Checks the checkpoints of exactly the size that the log has now. That of an empty log says
    /// nothing, and its signer is not known yet.
    fn check_reached(&mut self) -> Result<(), Finding> {
        let size = self.walk.chain().size();
        if size == 0 {
            return Ok(());
        }
        let Some(reached) = self.ahead.remove(&size) else { return Ok(()) };
        self.check_roots(size, &reached).map_err(|finding| finding.at(size))
    }

    fn check_roots(&mut self, size: u64, reached: &[SignedCheckpoint]) -> Result<(), Finding> {
        let what = format!("the checkpoint of {size} entries");
        let mut roots = Vec::with_capacity(reached.len());
        for checkpoint in reached {
            roots.push(self.walk.verify(&what, checkpoint)?.root);
        }
        if roots.iter().any(|root| Some(root) != roots.first()) {
            let what = format!("two checkpoints of {size} entries have different roots");
            return Err(Finding::tampered(what));
        }
        let root = self.walk.chain().root();
        if roots.iter().any(|found| *found != root) {
            return Err(Finding::tampered(format!("{what} has another root than the log")));
        }
        roots.iter().for_each(|_| self.walk.signed(size));
        Ok(())
    }

    fn check_ahead(&mut self) -> Result<(), Finding> {
        let end = self.walk.chain().size();
        let Some((size, ahead)) = self.ahead.range(end + 1..).next() else { return Ok(()) };
        let what = format!("the checkpoint of {size} entries");
        for checkpoint in ahead {
            self.walk.verify(&what, checkpoint).map_err(|finding| finding.at(*size))?;
        }
        Err(too_short(self.walk.chain(), "a signed checkpoint", *size))
    }
}
