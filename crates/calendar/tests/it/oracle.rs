//! A slow, simple evaluator: it iterates over every instant of a window and asks the zone library for
//! its wall time. It shares only the expression texts with the crate, and never parses them.

use std::collections::BTreeSet;

use calendar::{Fold, Gap};
use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

/// An item of a field's list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Star,
    StarStep(i64),
    Value(i64),
    Range(i64, i64),
    RangeStep(i64, i64, i64),
    Last,
    BeforeLast(i64),
    LastWeekday,
    Nearest(i64),
    Nth(i64, i64),
    LastOf(i64),
}

pub(crate) type Field = Vec<Item>;

#[derive(Clone, Debug)]
pub(crate) struct Expression {
    pub(crate) second: Field,
    pub(crate) minute: Field,
    pub(crate) hour: Field,
    pub(crate) day: Field,
    pub(crate) month: Field,
    pub(crate) weekday: Field,
    pub(crate) plus: bool,
}

pub(crate) struct Rules {
    pub(crate) gap: Option<Gap>,
    pub(crate) fold: Option<Fold>,
}

impl Item {
    fn text(&self) -> String {
        match self {
            Item::Star => "*".into(),
            Item::StarStep(n) => format!("*/{n}"),
            Item::Value(a) => a.to_string(),
            Item::Range(a, b) => format!("{a}-{b}"),
            Item::RangeStep(a, b, n) => format!("{a}-{b}/{n}"),
            Item::Last => "L".into(),
            Item::BeforeLast(n) => format!("L-{n}"),
            Item::LastWeekday => "LW".into(),
            Item::Nearest(n) => format!("{n}W"),
            Item::Nth(d, n) => format!("{d}#{n}"),
            Item::LastOf(d) => format!("{d}L"),
        }
    }

    /// For the fields whose smallest value is `min`.
    fn matches_number(&self, value: i64, min: i64) -> bool {
        match self {
            Item::Star => true,
            Item::StarStep(n) => (value - min) % n == 0,
            Item::Value(a) => value == *a,
            Item::Range(a, b) => *a <= value && value <= *b,
            Item::RangeStep(a, b, n) => *a <= value && value <= *b && (value - a) % n == 0,
            _ => false,
        }
    }

    fn matches_day(&self, date: Date) -> bool {
        let day = i64::from(date.day());
        let last = i64::from(date.days_in_month());
        match self {
            Item::Last => day == last,
            Item::BeforeLast(n) => day == last - n,
            Item::LastWeekday => working_days(date).last() == Some(&day),
            // The nearest of all working days of the month.
            Item::Nearest(n) => {
                let nearest = working_days(date).into_iter().min_by_key(|other| (other - n).abs());
                *n <= last && nearest == Some(day)
            }
            other => other.matches_number(day, 1),
        }
    }

    fn matches_weekday(&self, date: Date) -> bool {
        let weekday = i64::from(date.weekday().to_sunday_zero_offset());
        let day = i64::from(date.day());
        let last = i64::from(date.days_in_month());
        match self {
            Item::Nth(d, n) => weekday == d % 7 && (day + 6) / 7 == *n,
            Item::LastOf(d) => weekday == d % 7 && last < day + 7,
            other => {
                let sunday = weekday == 0 && !matches!(other, Item::Star | Item::StarStep(_));
                other.matches_number(weekday, 0) || (sunday && other.matches_number(7, 0))
            }
        }
    }
}

fn working_days(date: Date) -> Vec<i64> {
    let days = (1..=date.days_in_month()).filter(|day| {
        let weekday = Date::new(date.year(), date.month(), *day).unwrap().weekday();
        weekday != Weekday::Saturday && weekday != Weekday::Sunday
    });
    days.map(i64::from).collect()
}

fn starts_with_star(field: &Field) -> bool {
    matches!(field[0], Item::Star | Item::StarStep(_))
}

impl Expression {
    pub(crate) fn text(&self) -> String {
        let field = |field: &Field| field.iter().map(Item::text).collect::<Vec<_>>().join(",");
        let plus = if self.plus { "+" } else { "" };
        let fields = [&self.minute, &self.hour, &self.day, &self.month].map(field).join(" ");
        format!("{} {fields} {plus}{}", field(&self.second), field(&self.weekday))
    }

    pub(crate) fn is_fixed_time(&self) -> bool {
        ![&self.second, &self.minute, &self.hour].into_iter().any(starts_with_star)
    }

    pub(crate) fn matches_date(&self, date: Date) -> bool {
        let month = i64::from(date.month());
        let day = self.day.iter().any(|item| item.matches_day(date));
        let weekday = self.weekday.iter().any(|item| item.matches_weekday(date));
        let star = starts_with_star(&self.day) || starts_with_star(&self.weekday);
        let days = if star || self.plus { day && weekday } else { day || weekday };
        days && self.month.iter().any(|item| item.matches_number(month, 1))
    }

    fn matches_time(&self, wall: DateTime) -> bool {
        let any = |field: &Field, value: i8| {
            field.iter().any(|item| item.matches_number(i64::from(value), 0))
        };
        any(&self.second, wall.second())
            && any(&self.minute, wall.minute())
            && any(&self.hour, wall.hour())
    }

    fn matches(&self, wall: DateTime) -> bool {
        self.matches_time(wall) && self.matches_date(wall.date())
    }

    /// All slots in a window, both ends included, in seconds. `step_s` divides every matching time.
    pub(crate) fn slots(
        &self,
        zone: &TimeZone,
        window_s: (i64, i64),
        step_s: i64,
        rules: &Rules,
    ) -> Vec<i64> {
        let fixed = self.is_fixed_time();
        let gap = rules.gap.unwrap_or(if fixed { Gap::RunAfter } else { Gap::Skip });
        let fold = rules.fold.unwrap_or(if fixed { Fold::First } else { Fold::Both });
        let mut slots = BTreeSet::new();
        let mut instant = window_s.0;
        while instant <= window_s.1 {
            let at = Timestamp::from_second(instant).unwrap();
            let wall = zone.to_datetime(at);
            if self.matches(wall) && runs_in_pass(zone, at, wall, fold) {
                slots.insert(instant);
            }
            instant += step_s;
        }
        slots.extend(self.gap_slots(zone, window_s, step_s, gap));
        slots.into_iter().filter(|slot| (window_s.0..=window_s.1).contains(slot)).collect()
    }

    /// The slots that run because of a gap.
    fn gap_slots(
        &self,
        zone: &TimeZone,
        (first, last): (i64, i64),
        step_s: i64,
        gap: Gap,
    ) -> BTreeSet<i64> {
        let mut slots = BTreeSet::new();
        // A shifted time may come up to the length of a gap after the change.
        let start = Timestamp::from_second(first - 4 * 3600).unwrap();
        for change in zone.following(start) {
            let at = change.timestamp();
            if last < at.as_second() {
                break;
            }
            let before = zone.to_offset(at - SignedDuration::from_secs(1));
            let length = i64::from(change.offset().seconds() - before.seconds());
            if gap == Gap::Skip || !(1..=3 * 3600).contains(&length) {
                continue;
            }
            let begin = before.to_datetime(at);
            for passed in (0..length).step_by(step_s as usize) {
                if self.matches(begin + SignedDuration::from_secs(passed)) {
                    slots.insert(at.as_second() + if gap == Gap::Shift { passed } else { 0 });
                }
            }
        }
        slots
    }
}

/// Whether a wall time runs in this pass of a fold.
fn runs_in_pass(zone: &TimeZone, at: Timestamp, wall: DateTime, fold: Fold) -> bool {
    let is_first = match zone.to_ambiguous_timestamp(wall).offset() {
        AmbiguousOffset::Fold { before, .. } => zone.to_offset(at) == before,
        AmbiguousOffset::Gap { .. } | AmbiguousOffset::Unambiguous { .. } => return true,
    };
    match fold {
        Fold::First => is_first,
        Fold::Second => !is_first,
        Fold::Both => true,
    }
}
