//! What both verifiers share: verifying entry by entry, then writing the report.

use std::mem;

use super::external::CheckpointFile;
use super::report::{Finding, Report, Verdict};
use super::trust::{Anchors, GENESIS, KEY_REPLACED, SignedCheckpoint, TrustedKeys};
use crate::{Chain, Checkpoint, EntryRef, PrivateRef, VerifyingKey};

const NO_EXTERNAL_CHECKPOINT: &str = "no external checkpoint was given: entries removed from the \
    end, and a rewrite by the owner of the key, cannot be detected";

/// The state of a verification: the entries verified so far and what is known about them.
#[derive(Debug)]
pub(super) struct Verification {
    chain: Chain,
    trusted: TrustedKeys,
    instance: Option<String>,
    redacted: u64,
    checkpoints: u64,
    /// The number of entries, from the first one, that a verified signature covers.
    signed_size: u64,
    /// Files of checkpoints that the ledger must match.
    copies: Vec<CheckpointFile>,
    has_external: bool,
    /// The last note whose signature was verified. Its external copy needs no second verification.
    last_verified: Option<SignedCheckpoint>,
}

impl Verification {
    pub(super) fn new(anchors: Anchors) -> Verification {
        let Anchors { keys, checkpoints, own_checkpoints } = anchors;
        let has_external = checkpoints.is_some();
        let external = checkpoints.map(CheckpointFile::external);
        let own = own_checkpoints.map(CheckpointFile::beside_the_ledger);
        let mut walk = Verification {
            chain: Chain::empty(),
            trusted: TrustedKeys::new(keys),
            instance: None,
            redacted: 0,
            checkpoints: 0,
            signed_size: 0,
            copies: external.into_iter().chain(own).collect(),
            has_external,
            last_verified: None,
        };
        walk.compare_with_copies();
        walk
    }

    pub(super) fn chain(&self) -> &Chain {
        &self.chain
    }

    pub(super) fn keys(&self) -> &[VerifyingKey] {
        self.trusted.keys()
    }

    /// The id of the installation; known after the first entry.
    pub(super) fn instance(&self) -> Option<&str> {
        self.instance.as_deref()
    }

    pub(super) fn verify_entry(&mut self, entry: &EntryRef<'_>) -> Result<(), Finding> {
        self.check_entry(entry)?;
        self.compare_with_copies();
        Ok(())
    }

    /// Verifies sequence, time and hash first; the content of an entry that fails is not read.
    fn check_entry(&mut self, entry: &EntryRef<'_>) -> Result<(), Finding> {
        let fault = self.chain.verify_next(entry);
        fault.map_err(|fault| Finding::tampered(fault.to_string()).at(fault.seq))?;
        if let PrivateRef::Redacted { .. } = entry.private {
            self.redacted += 1;
            let what = format!(
                "the private part of entry {} was removed without an entry that records it",
                entry.seq
            );
            return Err(Finding::tampered(what).at(entry.seq));
        }
        if entry.seq == 1 {
            return self.read_genesis(entry);
        }
        if entry.kind == KEY_REPLACED {
            return self.trusted.record_replacement(entry);
        }
        Ok(())
    }

    /// Records that a verified signature covers the first `size` entries.
    pub(super) fn record_signature(&mut self, size: u64) {
        self.checkpoints += 1;
        self.signed_size = self.signed_size.max(size);
    }

    /// Verifies that a trusted key signed the checkpoint and that it belongs to this ledger. An empty
    /// ledger may have no keys yet; then nothing is verified, and no root can be wrong.
    pub(super) fn verify_checkpoint(
        &mut self,
        what: &str,
        note: &SignedCheckpoint,
    ) -> Result<Checkpoint, Finding> {
        if self.keys().is_empty() || self.last_verified.as_ref() == Some(note) {
            return Ok(note.unverified().clone());
        }
        let checkpoint =
            note.verify(self.keys()).map_err(|error| Finding::invalid_note(what, &error))?;
        match &self.instance {
            Some(instance) if checkpoint.origin != Checkpoint::origin_of(instance) => {
                let what = format!("{what} belongs to another ledger, `{}`", checkpoint.origin);
                Err(Finding::tampered(what))
            }
            _ => {
                self.last_verified = Some(note.clone());
                Ok(checkpoint)
            }
        }
    }

    /// Makes the last checks and writes the report. `outcome` is the result so far.
    pub(super) fn into_report(mut self, outcome: Result<(), Finding>) -> Report {
        let outcome = outcome.and_then(|()| self.finish_copies());
        let finding = outcome.and_then(|()| self.check_not_empty()).err();
        let (verdict, damage) = match finding {
            None => (Verdict::Ok, None),
            Some(finding) => (finding.verdict, Some(finding.damage)),
        };
        let size = self.chain.size();
        Report {
            verdict,
            entries: size,
            first_seq: (0 < size).then_some(1),
            last_seq: (0 < size).then_some(size),
            head: self.chain.head(),
            root: self.chain.root(),
            redacted: self.redacted,
            checkpoints: self.checkpoints,
            caveats: self.caveats(),
            damage,
        }
    }

    fn read_genesis(&mut self, entry: &EntryRef<'_>) -> Result<(), Finding> {
        if entry.kind != GENESIS {
            let what = format!("the ledger starts with `{}`, not with `{GENESIS}`", entry.kind);
            return Err(Finding::tampered(what).at(entry.seq));
        }
        self.instance = Some(self.trusted.read_genesis(entry)?);
        Ok(())
    }

    /// Keeps a mismatch for the end, because damage to the ledger itself is reported first.
    fn compare_with_copies(&mut self) {
        let mut copies = mem::take(&mut self.copies);
        for copy in copies.iter_mut().filter(|copy| copy.mismatch.is_none()) {
            copy.mismatch = self.compare_reached_checkpoints(copy).err();
        }
        self.copies = copies;
    }

    fn compare_reached_checkpoints(&mut self, copy: &mut CheckpointFile) -> Result<(), Finding> {
        let name = copy.name;
        while let Some(note) = copy.next_at(self.chain.size())? {
            let expected = self.verify_checkpoint(name, &note)?;
            if expected.root != self.chain.root() {
                return Err(Finding::truncated(format!(
                    "the first {} entries do not match {name}: the ledger was rewritten or replaced",
                    expected.size
                )));
            }
            if copy.is_external {
                self.record_signature(expected.size);
            }
        }
        Ok(())
    }

    fn finish_copies(&mut self) -> Result<(), Finding> {
        for copy in mem::take(&mut self.copies) {
            copy.mismatch.map_or(Ok(()), Err)?;
            if let Some(ahead) = copy.pending {
                let expected = self.verify_checkpoint(copy.name, &ahead)?;
                return Err(shorter_than(&self.chain, copy.name, expected.size));
            }
        }
        Ok(())
    }

    fn check_not_empty(&self) -> Result<(), Finding> {
        if self.chain.size() == 0 {
            return Err(Finding::tampered("entry 1 is missing: the ledger is empty").at(1));
        }
        Ok(())
    }

    fn caveats(self) -> Vec<String> {
        let unsigned = self.chain.size().saturating_sub(self.signed_size);
        let mut caveats = self.trusted.into_caveats();
        if 0 < unsigned {
            let last = match unsigned {
                1 => "entry".to_owned(),
                unsigned => format!("{unsigned} entries"),
            };
            caveats.push(format!("no signed checkpoint covers the last {last}"));
        }
        if !self.has_external {
            caveats.push(NO_EXTERNAL_CHECKPOINT.to_owned());
        }
        caveats
    }
}

/// The finding for a checkpoint `what` that covers more entries than the ledger has.
pub(super) fn shorter_than(chain: &Chain, what: &str, size: u64) -> Finding {
    let found = chain.size();
    let what = format!("the ledger ends at entry {found}, but {what} covers {size} entries");
    Finding::truncated(what).at(found + 1)
}
