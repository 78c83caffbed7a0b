//! The cost of a measured span: time, processor time, bytes written, transactions.

use std::ops::AddAssign;
use std::time::Instant;

use crate::machine;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    at: Instant,
    cpu_s: f64,
    written: u64,
}

/// What was used between two moments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) seconds: f64,
    pub(crate) cpu_s: f64,
    /// Bytes.
    pub(crate) written: u64,
    pub(crate) transactions: u64,
}

impl Moment {
    pub(crate) fn now() -> Moment {
        let (cpu_s, written) = (machine::cpu_seconds(), machine::written_bytes());
        Moment { at: Instant::now(), cpu_s, written }
    }

    pub(crate) fn until(self, end: Moment) -> Cost {
        Cost {
            seconds: (end.at - self.at).as_secs_f64(),
            cpu_s: end.cpu_s - self.cpu_s,
            written: end.written - self.written,
            transactions: 0,
        }
    }
}

impl Cost {
    pub(crate) fn cpu_us(&self, count: u64) -> f64 {
        self.cpu_s * 1e6 / count as f64
    }

    /// Describes the cost of one of `count` operations, without the time.
    pub(crate) fn each(&self, count: u64) -> String {
        let (cpu_us, kib) = (self.cpu_us(count), self.written as f64 / 1024.0 / count as f64);
        format!("{cpu_us:.0} µs of processor time and {kib:.1} KiB written each")
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.seconds += other.seconds;
        self.cpu_s += other.cpu_s;
        self.written += other.written;
        self.transactions += other.transactions;
    }
}
