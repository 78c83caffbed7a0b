//! The notices of a range of the ledger that still need a person.

use api::Notice;
use kernel::notice;
use ledger::EntryRef;
use tracing::warn;

use super::cursor::Cursor;
use crate::commit::codec;
use crate::timestamps::rfc3339;

/// Notices in one delivery; later ones go into the next.
const NOTICES_MAX: usize = 10_000;

/// Invariant: every notice is from an entry up to `through`, and none was settled up to `read`.
#[derive(Debug)]
pub(super) struct PendingNotices {
    pub(super) notices: Vec<Notice>,
    /// The last entry that was read.
    pub(super) read: u64,
    /// The last entry that may have left a notice here.
    pub(super) through: u64,
    /// Takes no more notices, because its delivery is under way or it is full.
    is_closed: bool,
}

impl PendingNotices {
    pub(super) fn after(cursor: Cursor) -> PendingNotices {
        let Cursor { done, through } = cursor;
        PendingNotices { notices: Vec::new(), read: done, through, is_closed: done < through }
    }

    /// The next entry.
    pub(super) fn take(&mut self, fields: &EntryRef<'_>) {
        self.read = fields.seq;
        if !self.is_closed {
            self.through = fields.seq;
        }
        let body = match codec::decode_facts(fields) {
            Ok(body) => body,
            Err(unknown) => return warn!(%unknown, "failed to read an entry for notices"),
        };
        if let Some(subject) = notice::settled_subject(&body) {
            self.notices.retain(|notice| notice.id != subject);
        }
        if fields.seq <= self.through {
            let wire = |notice| wire(fields.seq, notice);
            self.notices.extend(notice::notice_for(&body).map(wire));
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
        schedule_id: notice.schedule.map(|id| id.to_string()),
        schedule_name: None,
        link: None,
    }
}

#[cfg(test)]
mod tests {
    use ledger::{Hash, PrivateRef};

    use super::*;

    /// Entry `seq` says something of run `run`.
    fn take(pending: &mut PendingNotices, seq: u64, kind: &str, run: u64) {
        let facts: &[u8] = match kind {
            "run.ended" => br#"{"schedule":"sch_0123abcd","outcome":"failed","at":7}"#,
            _ => br#"{"schedule":"sch_0123abcd","by":"somebody","at":7}"#,
        };
        pending.take(&EntryRef {
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

    #[test]
    fn a_full_delivery_takes_no_more_notices_even_if_one_is_settled() {
        let mut pending = PendingNotices::after(Cursor::at(0));
        let max = NOTICES_MAX as u64;
        (1..=max).for_each(|seq| take(&mut pending, seq, "run.ended", seq));
        assert_eq!((pending.notices.len(), pending.through), (NOTICES_MAX, max));
        take(&mut pending, max + 1, "run.ended", max + 1);
        take(&mut pending, max + 2, "run.requeued", 1);
        take(&mut pending, max + 3, "run.ended", max + 3);
        assert_eq!((pending.notices.len(), pending.through), (NOTICES_MAX - 1, max));
        assert_eq!(pending.read, max + 3);
    }

    #[test]
    fn a_run_that_fails_again_after_a_retry_is_noticed_again() {
        let mut pending = PendingNotices::after(Cursor::at(0));
        for (seq, kind) in [(1, "run.ended"), (2, "run.requeued"), (3, "run.ended")] {
            take(&mut pending, seq, kind, 9);
        }
        let told: Vec<u64> = pending.notices.iter().map(|notice| notice.seq).collect();
        assert_eq!((told, pending.through), (vec![3], 3));
    }

    #[test]
    fn a_delivery_under_way_takes_nothing_new_and_drops_settled_notices() {
        let mut pending = PendingNotices::after(Cursor { done: 1, through: 3 });
        for (seq, run) in [(2, 2), (3, 3), (4, 4)] {
            take(&mut pending, seq, "run.ended", run);
        }
        take(&mut pending, 5, "run.requeued", 2);
        let told: Vec<u64> = pending.notices.iter().map(|notice| notice.seq).collect();
        assert_eq!((told, pending.through), (vec![3], 3));
    }
}
