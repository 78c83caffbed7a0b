//! What needs a human, gathered from entries of the log.

use api::Notice;
use kernel::notice;
use ledger::Fields;
use tracing::warn;

use super::position::Position;
use crate::stored;
use crate::times::rfc3339;

/// Notices that are gathered at a time; what comes after them has its turn later.
const NOTICES_MAX: usize = 10_000;

/// Invariant: every notice is from an entry up to `through`, and none was settled up to `read`.
#[derive(Debug)]
pub(super) struct Needed {
    pub(super) notices: Vec<Notice>,
    /// The last entry that was looked at.
    pub(super) read: u64,
    /// The last entry that may have left a notice here.
    pub(super) through: u64,
    /// It takes no more notices: its delivery was begun, or it is full.
    is_closed: bool,
}

impl Needed {
    pub(super) fn after(position: Position) -> Needed {
        let Position { done, through } = position;
        Needed { notices: Vec::new(), read: done, through, is_closed: done < through }
    }

    /// The next entry.
    pub(super) fn take(&mut self, fields: &Fields<'_>) {
        self.read = fields.seq;
        if !self.is_closed {
            self.through = fields.seq;
        }
        let body = match stored::facts(fields) {
            Ok(body) => body,
            Err(unknown) => return warn!(%unknown, "whether it needs a human is not known"),
        };
        if let Some(subject) = notice::settled(&body) {
            self.notices.retain(|notice| notice.id != subject);
        }
        if fields.seq <= self.through {
            let wire = |notice| wire(fields.seq, notice);
            self.notices.extend(notice::of(&body).map(wire));
            self.is_closed |= NOTICES_MAX <= self.notices.len();
        }
    }
}

fn wire(seq: u64, notice: notice::Notice) -> Notice {
    Notice {
        seq,
        kind: notice.kind.name().to_owned(),
        id: notice.subject,
        at: rfc3339(notice.at),
        text: notice.text,
        command: notice.command,
        link: None,
    }
}

#[cfg(test)]
mod tests {
    use ledger::{Hash, PrivateRef};

    use super::*;

    /// Entry `seq` says something of run `run`.
    fn take(needed: &mut Needed, seq: u64, kind: &str, run: u64) {
        let facts: &[u8] = match kind {
            "run.ended" => br#"{"schedule":"sch_0123abcd","outcome":"failed","at":7}"#,
            _ => br#"{"schedule":"sch_0123abcd","by":"somebody","at":7}"#,
        };
        needed.take(&Fields {
            seq,
            ts_us: 7,
            kind,
            version: 1,
            actor: "",
            role: "",
            cause: "",
            noun: "run",
            noun_id: &format!("run_{run:032x}"),
            facts,
            private: PrivateRef::None,
            hash: Hash::ZERO,
        });
    }

    /// What a full one has no room for is left for later also when there is room again.
    #[test]
    fn it_is_full_at_its_limit_and_stays_closed() {
        let mut needed = Needed::after(Position::at(0));
        let max = NOTICES_MAX as u64;
        (1..=max).for_each(|seq| take(&mut needed, seq, "run.ended", seq));
        assert_eq!((needed.notices.len(), needed.through), (NOTICES_MAX, max));
        take(&mut needed, max + 1, "run.ended", max + 1);
        take(&mut needed, max + 2, "run.requeued", 1);
        take(&mut needed, max + 3, "run.ended", max + 3);
        assert_eq!((needed.notices.len(), needed.through), (NOTICES_MAX - 1, max));
        assert_eq!(needed.read, max + 3);
    }

    #[test]
    fn what_failed_again_after_somebody_dealt_with_it_is_told_again() {
        let mut needed = Needed::after(Position::at(0));
        for (seq, kind) in [(1, "run.ended"), (2, "run.requeued"), (3, "run.ended")] {
            take(&mut needed, seq, kind, 9);
        }
        let told: Vec<u64> = needed.notices.iter().map(|notice| notice.seq).collect();
        assert_eq!((told, needed.through), (vec![3], 3));
    }

    #[test]
    fn a_delivery_that_was_begun_takes_nothing_new_and_leaves_out_what_is_settled() {
        let mut needed = Needed::after(Position { done: 1, through: 3 });
        for (seq, run) in [(2, 2), (3, 3), (4, 4)] {
            take(&mut needed, seq, "run.ended", run);
        }
        take(&mut needed, 5, "run.requeued", 2);
        let told: Vec<u64> = needed.notices.iter().map(|notice| notice.seq).collect();
        assert_eq!((told, needed.through), (vec![3], 3));
    }
}
