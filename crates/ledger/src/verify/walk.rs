//! The way along the log that both verifiers go: entry by entry, then the report.

use super::outside::Outside;
use super::report::{Finding, Report, Verdict};
use super::trust::{Anchors, GENESIS, KEY_REPLACED, SignedCheckpoint, Trust};
use crate::{Chain, Checkpoint, Fields, PrivateRef, VerifyingKey};

const NOT_COMPARED: &str = "no checkpoint from outside was given: entries that were removed at the \
    end, and a rewrite by someone who holds the key, cannot be seen";
const FROM_OUTSIDE: &str = "the checkpoint from outside";

#[derive(Debug)]
pub(super) struct Walk {
    chain: Chain,
    trust: Trust,
    instance: Option<String>,
    redacted: u64,
    checkpoints: u64,
    /// How many entries, from the first one on, a good signature covers.
    signed_size: u64,
    outside: Option<Outside>,
    /// The last note whose signature was good. Its copy from outside need not be verified again.
    verified: Option<SignedCheckpoint>,
}

impl Walk {
    pub(super) fn new(anchors: Anchors) -> Walk {
        let mut walk = Walk {
            chain: Chain::empty(),
            trust: Trust::new(anchors.keys),
            instance: None,
            redacted: 0,
            checkpoints: 0,
            signed_size: 0,
            outside: anchors.checkpoints.map(Outside::new),
            verified: None,
        };
        walk.compare_with_outside();
        walk
    }

    pub(super) fn chain(&self) -> &Chain {
        &self.chain
    }

    pub(super) fn keys(&self) -> &[VerifyingKey] {
        self.trust.keys()
    }

    /// Known after the first entry.
    pub(super) fn instance(&self) -> Option<&str> {
        self.instance.as_deref()
    }

    pub(super) fn entry(&mut self, fields: &Fields<'_>) -> Result<(), Finding> {
        self.check(fields)?;
        self.compare_with_outside();
        Ok(())
    }

    /// Sequence, time and hash first; only an entry that is in its place is worth reading.
    fn check(&mut self, fields: &Fields<'_>) -> Result<(), Finding> {
        let fault = self.chain.check(fields);
        fault.map_err(|fault| Finding::tampered(fault.to_string()).at(fault.seq))?;
        if let PrivateRef::Redacted { .. } = fields.private {
            self.redacted += 1;
            let what = format!(
                "the private part of entry {} was removed, and no entry of the log says so",
                fields.seq
            );
            return Err(Finding::tampered(what).at(fields.seq));
        }
        if fields.seq == 1 {
            return self.begin(fields);
        }
        if fields.kind == KEY_REPLACED {
            return self.trust.replace(fields);
        }
        Ok(())
    }

    /// A good signature covers the first `size` entries.
    pub(super) fn signed(&mut self, size: u64) {
        self.checkpoints += 1;
        self.signed_size = self.signed_size.max(size);
    }

    /// Whether the checkpoint is one of this log, signed by a key that counts. As long as the log is
    /// empty there may be no key, and no root either that it could vouch for wrongly.
    pub(super) fn verify(
        &mut self,
        what: &str,
        note: &SignedCheckpoint,
    ) -> Result<Checkpoint, Finding> {
        if self.keys().is_empty() || self.verified.as_ref() == Some(note) {
            return Ok(note.unverified().clone());
        }
        let checkpoint = note.verify(self.keys()).map_err(|error| Finding::note(what, &error))?;
        match &self.instance {
            Some(instance) if checkpoint.origin != Checkpoint::origin_of(instance) => {
                let what = format!("{what} belongs to another log, `{}`", checkpoint.origin);
                Err(Finding::tampered(what))
            }
            _ => {
                self.verified = Some(note.clone());
                Ok(checkpoint)
            }
        }
    }

    /// The last checks and the report. `outcome` is what was found up to here.
    pub(super) fn conclude(mut self, outcome: Result<(), Finding>) -> Report {
        let outcome = outcome.and_then(|()| self.conclude_outside());
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

    fn begin(&mut self, fields: &Fields<'_>) -> Result<(), Finding> {
        if fields.kind != GENESIS {
            let what = format!("the log begins with `{}`, not with `{GENESIS}`", fields.kind);
            return Err(Finding::tampered(what).at(fields.seq));
        }
        self.instance = Some(self.trust.begin(fields)?);
        Ok(())
    }

    /// What is wrong with a checkpoint from outside is kept back: damage to the log itself comes first.
    fn compare_with_outside(&mut self) {
        let Some(mut outside) = self.outside.take() else { return };
        if outside.finding.is_none() {
            outside.finding = self.compare_reached(&mut outside).err();
        }
        self.outside = Some(outside);
    }

    fn compare_reached(&mut self, outside: &mut Outside) -> Result<(), Finding> {
        while let Some(note) = outside.reached(self.chain.size())? {
            let expected = self.verify(FROM_OUTSIDE, &note)?;
            if expected.root != self.chain.root() {
                return Err(Finding::truncated(format!(
                    "the first {} entries are not those that {FROM_OUTSIDE} vouches for: \
                     the log was rewritten or replaced",
                    expected.size
                )));
            }
            self.signed(expected.size);
        }
        Ok(())
    }

    fn conclude_outside(&mut self) -> Result<(), Finding> {
        let Some(outside) = &mut self.outside else { return Ok(()) };
        let (finding, ahead) = (outside.finding.take(), outside.ahead.take());
        finding.map_or(Ok(()), Err)?;
        let Some(ahead) = ahead else { return Ok(()) };
        let expected = self.verify(FROM_OUTSIDE, &ahead)?;
        Err(too_short(&self.chain, FROM_OUTSIDE, expected.size))
    }

    fn check_not_empty(&self) -> Result<(), Finding> {
        if self.chain.size() == 0 {
            return Err(Finding::tampered("entry 1 is missing: the log is empty").at(1));
        }
        Ok(())
    }

    fn caveats(self) -> Vec<String> {
        let unsigned = self.chain.size().saturating_sub(self.signed_size);
        let mut caveats = self.trust.into_caveats();
        if 0 < unsigned {
            caveats.push(format!("no signed checkpoint covers the last {unsigned} entries"));
        }
        if self.outside.is_none() {
            caveats.push(NOT_COMPARED.to_owned());
        }
        caveats
    }
}

/// `what` vouches for entries that are not there.
pub(super) fn too_short(chain: &Chain, what: &str, size: u64) -> Finding {
    let found = chain.size();
    let what = format!("the log ends at entry {found}, but {what} vouches for {size} entries");
    Finding::truncated(what).at(found + 1)
}
