//! Why a trigger has no next slot. Without a reason, a schedule that never fires looks like one that
//! waits.

use std::fmt;

use crate::{Calendar, Cron, END_US, Trigger, format_instant};

/// Why no slot follows an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoNextSlot {
    /// No slot exists at all; usually another expression was meant.
    Never { suggestion: Option<Cron> },
    /// The only slot is past.
    Past { at_us: i64 },
    /// All slots are past.
    Ended { last_us: i64 },
}

impl Calendar {
    /// Why no slot follows an instant; `None` if one does.
    pub fn no_next_slot(&self, after_us: i64) -> Option<NoNextSlot> {
        if self.next_after(after_us).is_some() {
            return None;
        }
        if let Trigger::Once { at_us } = self.trigger() {
            return Some(NoNextSlot::Past { at_us: *at_us });
        }
        if let Some(last_us) = self.last_at_or_before(END_US) {
            return Some(NoNextSlot::Ended { last_us });
        }
        let instead = match self.trigger() {
            Trigger::Cron { expression, .. } => expression.suggest_if_never(),
            Trigger::Once { .. } | Trigger::Interval { .. } | Trigger::Daily { .. } => None,
        };
        Some(NoNextSlot::Never { suggestion: instead })
    }
}

impl fmt::Display for NoNextSlot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoNextSlot::Never { suggestion: instead } => {
                write!(out, "it never fires: no time from 1970 to 2199 matches")?;
                match instead {
                    Some(cron) => write!(out, "; did you mean `{cron}`?"),
                    None => Ok(()),
                }
            }
            NoNextSlot::Past { at_us } => {
                write!(out, "that time is past: {}", format_instant(*at_us))
            }
            NoNextSlot::Ended { last_us } => {
                write!(
                    out,
                    "it does not fire again: its last time was {}",
                    format_instant(*last_us)
                )
            }
        }
    }
}
