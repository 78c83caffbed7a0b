//! Why a calendar has nothing to say: a schedule that will not fire looks like one that waits.

use std::fmt;

use crate::{Calendar, Cron, END_US, Trigger, format_instant};

/// There is no slot after an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Nor before it. Mostly another expression was meant.
    Never { instead: Option<Cron> },
    /// There have been slots.
    Ended { last_us: i64 },
}

impl Calendar {
    /// Why there is no slot after an instant, if there is none.
    pub fn silence_after(&self, after_us: i64) -> Option<Silence> {
        if self.next_after(after_us).is_some() {
            return None;
        }
        if let Some(last_us) = self.last_until(END_US) {
            return Some(Silence::Ended { last_us });
        }
        let instead = match self.trigger() {
            Trigger::Cron { expression, .. } => expression.instead_of_never(),
            Trigger::Once { .. } | Trigger::Interval { .. } | Trigger::Daily { .. } => None,
        };
        Some(Silence::Never { instead })
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Silence::Never { instead } => {
                write!(out, "it never fires: no time from 1970 to 2199 matches")?;
                match instead {
                    Some(cron) => write!(out, "; did you mean `{cron}`?"),
                    None => Ok(()),
                }
            }
            Silence::Ended { last_us } => {
                write!(out, "it fires no more: its last time is {}", format_instant(*last_us))
            }
        }
    }
}
