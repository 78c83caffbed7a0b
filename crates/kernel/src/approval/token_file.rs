//! A token file: a file that approves the next run of a schedule, before or after approval is requested.
//!
//! It names a schedule and not a plan, so it is valid once, for a short time, and only while schedule and
//! agent are unchanged.

use calendar::format_instant;

use crate::ScheduleId;
use crate::time::Timestamp;

/// How long a file without an expiry is valid.
const VALID_FOR_US: i64 = 3_600_000_000;
/// How far the writer's clock may be ahead of ours.
const CLOCK_SKEW_US_MAX: i64 = 300_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenFile {
    pub schedule: Option<ScheduleId>,
    pub approved_by: String,
    pub approved_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFileRefusal {
    #[error("it is for schedule `{0}`")]
    OtherSchedule(ScheduleId),
    #[error("its approval time {} is in the future", format_instant(.0.as_micros()))]
    ApprovedInFuture(Timestamp),
    #[error("it expired at {}", format_instant(.0.as_micros()))]
    Expired(Timestamp),
    #[error("the schedule or its agent changed at {}, after the approval", format_instant(.0.as_micros()))]
    Changed(Timestamp),
}

impl TokenFile {
    /// Checks that it approves a schedule that last changed at `changed_at`, itself or its agent.
    pub fn check_applies(
        &self,
        schedule: &ScheduleId,
        changed_at: Timestamp,
        now: Timestamp,
    ) -> Result<(), TokenFileRefusal> {
        if let Some(other) = self.schedule.as_ref().filter(|other| *other != schedule) {
            return Err(TokenFileRefusal::OtherSchedule(other.clone()));
        }
        if now.after_us(CLOCK_SKEW_US_MAX) < self.approved_at {
            return Err(TokenFileRefusal::ApprovedInFuture(self.approved_at));
        }
        let until = self.expires_at.unwrap_or(self.approved_at.after_us(VALID_FOR_US));
        if until <= now {
            return Err(TokenFileRefusal::Expired(until));
        }
        match changed_at <= self.approved_at {
            true => Ok(()),
            false => Err(TokenFileRefusal::Changed(changed_at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_file_applies_until_it_expires_or_the_schedule_changes() {
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
            (file(Some(&own), None), 0, 4_600, Err(TokenFileRefusal::Expired(at(4_600)))),
            (file(Some(&own), Some(9_000)), 0, 8_999, Ok(())),
            (file(Some(&own), Some(1_100)), 0, 1_100, Err(TokenFileRefusal::Expired(at(1_100)))),
            (
                file(Some(&other), None),
                0,
                1_001,
                Err(TokenFileRefusal::OtherSchedule(other.clone())),
            ),
            (file(None, None), 0, 700, Ok(())),
            (file(None, None), 0, 699, Err(TokenFileRefusal::ApprovedInFuture(at(1_000)))),
            (file(None, None), 1_001, 1_002, Err(TokenFileRefusal::Changed(at(1_001)))),
        ];
        for (file, changed, now, expected) in table {
            assert_eq!(
                file.check_applies(&own, at(changed), at(now)),
                expected,
                "{file:?} at {now}"
            );
        }
    }
}
