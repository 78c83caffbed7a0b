//! Counters and histograms: arrays of atomic numbers, one for each combination of label values.
//!
//! Numbers are read while others are added, so a scrape is no snapshot; each number only grows.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::definition::{Definition, Kind};
use crate::exposition::Exposition;

#[derive(Debug)]
pub struct Counter {
    definition: &'static Definition,
    values: Box<[AtomicU64]>,
}

#[derive(Debug)]
pub struct Histogram {
    definition: &'static Definition,
    bounds: &'static [u64],
    series: Box<[Buckets]>,
}

#[derive(Debug)]
struct Buckets {
    /// How many values are at most each bound and above the one before; the last is above all bounds.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Counter {
    pub(crate) fn new(definition: &'static Definition) -> Counter {
        let values = (0..definition.series_count()).map(|_| AtomicU64::new(0)).collect();
        Counter { definition, values }
    }

    /// Adds to the series with these label values. A value that is not in the list of its label counts nowhere.
    pub fn add(&self, labels: &[&str], amount: u64) {
        let series = self.definition.series(labels);
        debug_assert!(series.is_some(), "`{}` has no series {labels:?}", self.definition.name);
        if let Some(value) = series.and_then(|series| self.values.get(series)) {
            value.fetch_add(amount, Ordering::Relaxed);
        }
    }

    /// Every series is written, also those at zero, so that the first increase is seen.
    pub(crate) fn write(&self, out: &mut Exposition) {
        out.family(self.definition);
        for (series, value) in self.values.iter().enumerate() {
            let labels = self.definition.values_of(series);
            out.sample(self.definition, "", &labels, self.definition.scaled(load(value)));
        }
    }
}

impl Histogram {
    pub fn new(definition: &'static Definition) -> Histogram {
        let bounds = match definition.kind {
            Kind::Histogram(bounds) => bounds,
            Kind::Counter | Kind::Gauge => &[],
        };
        let buckets = |_| Buckets {
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: AtomicU64::new(0),
        };
        let series = (0..definition.series_count()).map(buckets).collect();
        Histogram { definition, bounds, series }
    }

    /// Records a value in the series with these label values. A label value that is not in its list counts nowhere.
    pub fn observe(&self, labels: &[&str], value: u64) {
        let series = self.definition.series(labels);
        debug_assert!(series.is_some(), "`{}` has no series {labels:?}", self.definition.name);
        let Some(buckets) = series.and_then(|series| self.series.get(series)) else { return };
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = buckets.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        buckets.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Only series with a value are written, because each has many lines.
    pub fn write(&self, out: &mut Exposition) {
        let definition = self.definition;
        out.family(definition);
        for (series, buckets) in self.series.iter().enumerate() {
            let counts: Vec<u64> = buckets.counts.iter().map(load).collect();
            let total: u64 = counts.iter().sum();
            if total == 0 {
                continue;
            }
            let labels = definition.values_of(series);
            let mut count = 0;
            for (bound, bucket) in self.bounds.iter().zip(&counts) {
                count += bucket;
                out.bucket(definition, &labels, &definition.scaled(*bound).to_string(), count);
            }
            out.bucket(definition, &labels, "+Inf", total);
            out.sample(definition, "_sum", &labels, definition.scaled(load(&buckets.sum)));
            out.sample(definition, "_count", &labels, total as f64);
        }
    }
}

fn load(value: &AtomicU64) -> u64 {
    value.load(Ordering::Relaxed)
}
