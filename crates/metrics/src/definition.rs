//! What a metric is: its name, type, labels and meaning.

/// A metric, as it is documented and exposed.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [Label],
    /// A sentence.
    pub help: &'static str,
    /// Recorded numbers are divided by this: seconds are recorded in microseconds.
    pub divisor: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    /// With the upper bounds of its buckets, as recorded.
    Histogram(&'static [u64]),
}

/// A label, and the values that it can have.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    pub name: &'static str,
    /// Empty if the one value is known only when the daemon runs.
    pub values: &'static [&'static str],
}

impl Definition {
    pub const fn counter(
        name: &'static str,
        labels: &'static [Label],
        help: &'static str,
    ) -> Definition {
        Definition { name, kind: Kind::Counter, labels, help, divisor: 1 }
    }

    pub const fn gauge(
        name: &'static str,
        labels: &'static [Label],
        help: &'static str,
    ) -> Definition {
        Definition { name, kind: Kind::Gauge, labels, help, divisor: 1 }
    }

    pub const fn histogram(
        name: &'static str,
        bounds: &'static [u64],
        labels: &'static [Label],
        help: &'static str,
    ) -> Definition {
        Definition { name, kind: Kind::Histogram(bounds), labels, help, divisor: 1 }
    }

    /// The same metric, recorded in millionths.
    pub const fn in_millionths(self) -> Definition {
        Definition { divisor: 1_000_000, ..self }
    }

    /// The number of series: one for each combination of label values.
    pub fn series_count(&self) -> usize {
        self.labels.iter().map(|label| label.values.len()).product()
    }

    /// The series with these label values. `None` if one is not in its list.
    pub fn series(&self, values: &[&str]) -> Option<usize> {
        if values.len() != self.labels.len() {
            return None;
        }
        self.labels.iter().zip(values).try_fold(0, |index, (label, value)| {
            let position = label.values.iter().position(|it| it == value)?;
            Some(index * label.values.len() + position)
        })
    }

    /// A recorded number in the unit of the metric.
    pub(crate) fn scaled(&self, value: u64) -> f64 {
        value as f64 / self.divisor as f64
    }

    /// The label values of a series, the reverse of [`Definition::series`].
    pub(crate) fn values_of(&self, mut series: usize) -> Vec<&'static str> {
        let mut values: Vec<&str> = self
            .labels
            .iter()
            .rev()
            .map(|label| {
                let count = label.values.len().max(1);
                let value = label.values.get(series % count).copied().unwrap_or_default();
                series /= count;
                value
            })
            .collect();
        values.reverse();
        values
    }
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_and_label_values_correspond() {
        const COLOURS: Label = Label { name: "colour", values: &["red", "blue"] };
        const SIZES: Label = Label { name: "size", values: &["s", "m", "l"] };
        let shirts = Definition::counter("shirts_total", &[COLOURS, SIZES], "Shirts.");
        assert_eq!(shirts.series_count(), 6);
        for series in 0..6 {
            assert_eq!(shirts.series(&shirts.values_of(series)), Some(series));
        }
        assert_eq!(shirts.values_of(4), ["blue", "m"]);
        assert_eq!(shirts.series(&["green", "m"]), None);
        assert_eq!(shirts.series(&["red"]), None);
        let plain = Definition::counter("plain_total", &[], "None.");
        assert_eq!((plain.series_count(), plain.series(&[])), (1, Some(0)));
    }
}
