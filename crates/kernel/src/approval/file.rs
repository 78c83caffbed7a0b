//! A file with which somebody approves the next run of a schedule, before or after it asks.
//!
//! It names a schedule and not a plan, so it is good for what the schedule and its agent said when it was
//! written, for a short time, once.

use calendar::format_instant;

use crate::id::ScheduleId;
use crate::time::Timestamp;

/// How long it is good if it does not say.
const GOOD_FOR_US: i64 = 3_600_000_000;
/// How far the clock may be ahead of whoever wrote it.
const AHEAD_US: i64 = 300_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFile {
    pub schedule: Option<ScheduleId>,
    pub approved_by: String,
    pub approved_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("it is for schedule `{0}`")]
    OtherSchedule(ScheduleId),
    #[error("it was approved at {}, and that is still to come", format_instant(.0.as_micros()))]
    ToCome(Timestamp),
    #[error("it was good until {}", format_instant(.0.as_micros()))]
    Expired(Timestamp),
    #[error("what it approves was changed at {}, after it was approved", format_instant(.0.as_micros()))]
    Changed(Timestamp),
}

impl TokenFile {
    /// Whether it approves what a schedule says that was last changed then, itself or by its agent.
    pub fn fits(
        &self,
        schedule: &ScheduleId,
        changed_at: Timestamp,
        now: Timestamp,
    ) -> Result<(), Unfit> {
        if let Some(other) = self.schedule.as_ref().filter(|other| *other != schedule) {
            return Err(Unfit::OtherSchedule(other.clone()));
        }
        if now.after_us(AHEAD_US) < self.approved_at {
            return Err(Unfit::ToCome(self.approved_at));
        }
        let until = self.expires_at.unwrap_or(self.approved_at.after_us(GOOD_FOR_US));
        if until <= now {
            return Err(Unfit::Expired(until));
        }
        match changed_at <= self.approved_at {
            true => Ok(()),
            false => Err(Unfit::Changed(changed_at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_good_for_what_was_there_when_it_was_written() {
        let at = |second: i64| Timestamp::from_micros(second * 1_000_000);
        let (own, other) = ("sch_0a1b2c3d".parse().unwrap(), "sch_89abcdef".parse().unwrap());
        let file = |schedule: Option<&ScheduleId>, expires_at: Option<i64>| TokenFile {
            schedule: schedule.cloned(),
            approved_by: "ada".to_owned(),
            approved_at: at(1_000),
            expires_at: expires_at.map(at),
        };
        let table = [
            (file(None, None), 1_000, 1_001, Ok(())),
            (file(Some(&own), None), 0, 4_599, Ok(())),
            (file(Some(&own), None), 0, 4_600, Err(Unfit::Expired(at(4_600)))),
            (file(Some(&own), Some(9_000)), 0, 8_999, Ok(())),
            (file(Some(&own), Some(1_100)), 0, 1_100, Err(Unfit::Expired(at(1_100)))),
            (file(Some(&other), None), 0, 1_001, Err(Unfit::OtherSchedule(other.clone()))),
            (file(None, None), 0, 700, Ok(())),
            (file(None, None), 0, 699, Err(Unfit::ToCome(at(1_000)))),
            (file(None, None), 1_001, 1_002, Err(Unfit::Changed(at(1_001)))),
        ];
        for (file, changed, now, expected) in table {
            assert_eq!(file.fits(&own, at(changed), at(now)), expected, "{file:?} at {now}");
        }
    }
}
