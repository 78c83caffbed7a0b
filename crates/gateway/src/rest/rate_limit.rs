//! A limit on the requests of one principal per second, so that a client in a loop cannot occupy the daemon. Stops are not
//! limited.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use api::{Code, Error};
use tokio::time::Instant;

use crate::rest::problem::Problem;

/// What one principal may do: this many requests at once, and as many in each second afterwards.
#[derive(Clone, Copy, Debug)]
struct Rate {
    burst: u32,
    per_second: u32,
}

const READS: Rate = Rate { burst: 400, per_second: 200 };
const CHANGES: Rate = Rate { burst: 100, per_second: 50 };
/// Principals of whom the requests are counted. Beyond it, those that have all their requests left are forgotten.
const PRINCIPALS_MAX: usize = 1_024;

/// The requests of all principals.
#[derive(Debug, Default)]
pub(super) struct RateLimit {
    buckets: Mutex<HashMap<(String, bool), Bucket>>,
}

/// The requests that a principal has left.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl RateLimit {
    /// Counts a request, or refuses it and says when to try again.
    pub(super) fn check(&self, principal: &str, changes: bool) -> Result<(), Problem> {
        let Err(wait) = self.take(principal, changes, Instant::now()) else { return Ok(()) };
        let Rate { burst, per_second } = rate_of(changes);
        let what =
            format!("too many requests; the limit is {per_second} in a second, {burst} at once");
        let error = Error::new(Code::LimitReached, what).hint("wait, and try again");
        Err(Problem::retry_after(error, wait.as_secs() + 1))
    }

    /// Takes one request, or returns how long to wait for the next.
    fn take(&self, principal: &str, changes: bool, now: Instant) -> Result<(), Duration> {
        let rate = rate_of(changes);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if PRINCIPALS_MAX <= buckets.len() {
            buckets.retain(|(_, changes), bucket| !bucket.is_full(rate_of(*changes), now));
        }
        let full = Bucket { left: rate.burst.into(), at: now };
        let bucket = buckets.entry((principal.to_owned(), changes)).or_insert(full);
        *bucket = Bucket { left: bucket.left_at(rate, now), at: now };
        if bucket.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - bucket.left) / f64::from(rate.per_second)));
        }
        bucket.left -= 1.0;
        Ok(())
    }
}

impl Bucket {
    fn left_at(&self, rate: Rate, now: Instant) -> f64 {
        let refilled = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left + refilled * f64::from(rate.per_second)).min(rate.burst.into())
    }

    fn is_full(&self, rate: Rate, now: Instant) -> bool {
        f64::from(rate.burst) <= self.left_at(rate, now)
    }
}

const fn rate_of(changes: bool) -> Rate {
    if changes { CHANGES } else { READS }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_allowed_and_then_the_rate() {
        let limit = RateLimit::default();
        let start = Instant::now();
        let take = |principal: &str, after_ms: u64| {
            limit.take(principal, true, start + Duration::from_millis(after_ms))
        };
        for _ in 0..CHANGES.burst {
            assert_eq!(take("ada", 0), Ok(()));
        }
        assert_eq!(take("ada", 0), Err(Duration::from_millis(20)));
        assert_eq!(take("ben", 0), Ok(()), "each principal has its own");
        assert_eq!(limit.take("ada", false, start), Ok(()), "reads are counted apart");
        assert_eq!(take("ada", 21), Ok(()));
        assert!(take("ada", 21).is_err());
        for _ in 0..CHANGES.burst {
            assert_eq!(take("ada", 60_000), Ok(()));
        }
        assert!(take("ada", 60_000).is_err(), "no more than a burst is saved");
    }

    #[test]
    fn principals_that_have_all_requests_left_are_forgotten() {
        let limit = RateLimit::default();
        let start = Instant::now();
        for index in 0..PRINCIPALS_MAX {
            limit.take(&format!("p{index}"), true, start).unwrap();
        }
        limit.take("other", true, start + Duration::from_secs(1)).unwrap();
        assert_eq!(limit.buckets.lock().unwrap().len(), 1);
    }
}
