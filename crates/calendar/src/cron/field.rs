//! The seven fields of an expression: their ranges, the names of their values, and their value sets.

use std::fmt;

pub const YEAR_MIN: u16 = 1970;
pub const YEAR_MAX: u16 = 2199;

const MONTHS: &[&str] =
    &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
/// Sunday is both 0 and 7.
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldName {
    Second,
    Minute,
    Hour,
    DayOfMonth,
    Month,
    DayOfWeek,
    Year,
}

impl FieldName {
    pub(crate) const fn min(self) -> u16 {
        match self {
            FieldName::Second | FieldName::Minute | FieldName::Hour | FieldName::DayOfWeek => 0,
            FieldName::DayOfMonth | FieldName::Month => 1,
            FieldName::Year => YEAR_MIN,
        }
    }

    /// The largest value that `*` matches.
    pub(crate) const fn max(self) -> u16 {
        match self {
            FieldName::Second | FieldName::Minute => 59,
            FieldName::Hour => 23,
            FieldName::DayOfMonth => 31,
            FieldName::Month => 12,
            FieldName::DayOfWeek => 6,
            FieldName::Year => YEAR_MAX,
        }
    }

    /// The largest value that may be written: day-of-week also accepts 7 for Sunday.
    pub(crate) const fn max_accepted(self) -> u16 {
        match self {
            FieldName::DayOfWeek => 7,
            _ => self.max(),
        }
    }

    /// The number of values, and so the largest useful step.
    pub(crate) const fn len(self) -> u16 {
        self.max() - self.min() + 1
    }

    /// What the field accepts, for a hint.
    pub(crate) const fn accepted_values(self) -> &'static str {
        match self {
            FieldName::Second | FieldName::Minute => "0 to 59, as in `0,30`, `10-20` or `*/15`",
            FieldName::Hour => "0 to 23, as in `9,17`, `9-17` or `*/2`",
            FieldName::DayOfMonth => "1 to 31, as in `1,15`, `*/2`, `L`, `L-2`, `LW` or `15W`",
            FieldName::Month => "1 to 12 or JAN to DEC, as in `JAN,JUL` or `4-9`",
            FieldName::DayOfWeek => {
                "0 to 7 or SUN to SAT, as in `MON-FRI`, `TUE#3`, `FRI#L` or `+FRI`"
            }
            FieldName::Year => "1970 to 2199, as in `2027` or `2027-2030`",
        }
    }

    pub(crate) const fn is_day(self) -> bool {
        matches!(self, FieldName::DayOfMonth | FieldName::DayOfWeek)
    }

    /// The value of an upper-case name in this field.
    pub(crate) fn value_of(self, name: &str) -> Option<u16> {
        let position = self.names().iter().position(|known| *known == name)?;
        Some(position as u16 + self.min())
    }

    /// The text of a value: its name, if the field has names.
    pub(crate) fn text_of(self, value: u16) -> String {
        let name = self.names().get(usize::from(value.saturating_sub(self.min())));
        name.map_or_else(|| value.to_string(), |name| (*name).to_owned())
    }

    const fn names(self) -> &'static [&'static str] {
        match self {
            FieldName::Month => MONTHS,
            FieldName::DayOfWeek => WEEKDAYS,
            _ => &[],
        }
    }
}

impl fmt::Display for FieldName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            FieldName::Second => "seconds",
            FieldName::Minute => "minute",
            FieldName::Hour => "hour",
            FieldName::DayOfMonth => "day-of-month",
            FieldName::Month => "month",
            FieldName::DayOfWeek => "day-of-week",
            FieldName::Year => "year",
        })
    }
}

/// The values of a field as bits. Whether the field *starts with* a star is part of its meaning: the
/// rules for the day fields and for daylight saving depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) bits: u64,
    pub(crate) starts_with_star: bool,
}

impl Field {
    pub(crate) fn only(value: u16) -> Field {
        Field { bits: 1 << value, starts_with_star: false }
    }

    pub(crate) fn contains(self, value: u32) -> bool {
        self.bits & (1 << value) != 0
    }

    pub(crate) fn is_full(self, name: FieldName) -> bool {
        self.bits == step_bits(name, 1)
    }

    /// The smallest value at or after `value`.
    pub(crate) fn at_or_after(self, value: u32) -> Option<u32> {
        let rest = self.bits & u64::MAX.checked_shl(value).unwrap_or(0);
        (rest != 0).then(|| rest.trailing_zeros())
    }

    /// The largest value at or before `value`.
    pub(crate) fn at_or_before(self, value: u32) -> Option<u32> {
        let rest = self.bits & (u64::MAX >> (63 - value.min(63)));
        (rest != 0).then(|| 63 - rest.leading_zeros())
    }

    pub(crate) fn count(self) -> u64 {
        u64::from(self.bits.count_ones())
    }

    pub(crate) fn count_before(self, value: u32) -> u64 {
        u64::from((self.bits & !u64::MAX.checked_shl(value).unwrap_or(0)).count_ones())
    }

    pub(crate) fn values(self) -> Vec<u16> {
        (0..64).filter(|value| self.contains(u32::from(*value))).collect()
    }

    /// The step `n` if the values are exactly those of `*/n`.
    pub(crate) fn step(self, name: FieldName) -> Option<u16> {
        (1..=name.len()).find(|step| step_bits(name, *step) == self.bits)
    }

    /// The canonical text.
    pub(crate) fn text(self, name: FieldName) -> String {
        if !self.starts_with_star {
            return list_text(name, self.bits);
        }
        let step = (1..=name.len()).find(|step| step_bits(name, *step) & !self.bits == 0);
        let step = step.unwrap_or(name.len());
        let star = if step == 1 { "*".to_owned() } else { format!("*/{step}") };
        match self.bits & !step_bits(name, step) {
            0 => star,
            rest => format!("{star},{}", list_text(name, rest)),
        }
    }
}

/// The bits of `*/step`.
fn step_bits(name: FieldName, step: u16) -> u64 {
    let values = (name.min()..=name.max()).step_by(usize::from(step.max(1)));
    values.fold(0, |bits, value| bits | 1 << value)
}

fn list_text(name: FieldName, bits: u64) -> String {
    let mut values = Field { bits, starts_with_star: false }.values();
    if name == FieldName::DayOfWeek {
        sort_from_monday(&mut values);
    }
    values_text(name, &values)
}

/// Sorts weekdays from Monday to Sunday, with Sunday as 7, so that Friday to Sunday is one run.
pub(crate) fn sort_from_monday(values: &mut [u16]) {
    values.iter_mut().filter(|day| **day == 0).for_each(|day| *day = 7);
    values.sort_unstable();
}

pub(crate) fn values_text(name: FieldName, values: &[u16]) -> String {
    let text = |value| name.text_of(value);
    if let Some((first, last, step)) = progression(values) {
        return format!("{}-{}/{step}", text(first), text(last));
    }
    let runs = runs(values).into_iter().map(|(first, last)| match first == last {
        true => text(first),
        false => format!("{}-{}", text(first), text(last)),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// First, last and step of at least four evenly spaced values that are not adjacent.
fn progression(values: &[u16]) -> Option<(u16, u16, u16)> {
    let (first, second) = (*values.first()?, *values.get(1)?);
    let step = second - first;
    let even = values.iter().zip((first..).step_by(usize::from(step.max(1)))).all(|(a, b)| *a == b);
    (even && 1 < step && 4 <= values.len()).then_some((first, *values.last()?, step))
}

/// The first and last value of each run of consecutive values; a run of two stays two values.
pub(crate) fn runs(values: &[u16]) -> Vec<(u16, u16)> {
    let chunks = values.chunk_by(|a, b| a + 1 == *b);
    let pairs = chunks.flat_map(|run| match run {
        [a, b] => vec![(*a, *a), (*b, *b)],
        [first, .., last] => vec![(*first, *last)],
        [only] => vec![(*only, *only)],
        [] => vec![],
    });
    pairs.collect()
}

const YEAR_WORDS: usize = 4;

/// The years of an expression as bits, from 1970 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Years([u64; YEAR_WORDS]);

impl Years {
    pub(crate) fn all() -> Years {
        let mut years = Years::default();
        (YEAR_MIN..=YEAR_MAX).for_each(|year| years.insert(year));
        years
    }

    pub(crate) fn insert(&mut self, year: u16) {
        let bit = usize::from(year.saturating_sub(YEAR_MIN));
        if let Some(word) = self.0.get_mut(bit / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    pub(crate) fn contains(&self, year: i64) -> bool {
        let bit = usize::try_from(year - i64::from(YEAR_MIN)).unwrap_or(usize::MAX);
        self.0.get(bit / 64).is_some_and(|word| word & (1 << (bit % 64)) != 0)
    }

    pub(crate) fn values(&self) -> Vec<u16> {
        (YEAR_MIN..=YEAR_MAX).filter(|year| self.contains(i64::from(*year))).collect()
    }
}
