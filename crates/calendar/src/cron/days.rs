//! The day-of-month and day-of-week fields. The days of a month are bits, from bit 1 on.

use super::field::{Field, FieldName};
use super::parse::{Item, to_field};
use crate::civil::Month;

const SATURDAY: u32 = 6;
const SUNDAY: u32 = 0;
const WEEK_BITS: u32 = 0x7f;

/// Day-of-month: plain days, and days that depend on the month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DayOfMonthField {
    pub(crate) plain: Field,
    /// Bit n: n days before the last day.
    pub(crate) from_last: u32,
    /// Bit n: the Monday to Friday nearest to day n.
    pub(crate) nearest: u32,
    pub(crate) last_weekday: bool,
}

/// Day-of-week: plain weekdays with Sunday = bit 0, and weekdays counted within the month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DayOfWeekField {
    pub(crate) plain: Field,
    /// The weekdays that match on their first to fifth occurrence in the month.
    pub(crate) nth: [u32; 5],
    /// The weekdays that match on their last occurrence in the month.
    pub(crate) last: u32,
}

impl DayOfMonthField {
    pub(super) fn of(items: &[Item]) -> DayOfMonthField {
        let mut days = DayOfMonthField { plain: to_field(items), ..DayOfMonthField::default() };
        for item in items {
            match item {
                Item::FromLast(back) => days.from_last |= 1 << back,
                Item::LastWeekday => days.last_weekday = true,
                Item::Nearest(day) => days.nearest |= 1 << day,
                Item::Range { .. } | Item::Nth { .. } | Item::LastOf { .. } => {}
            }
        }
        days
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.from_last == 0 && self.nearest == 0 && !self.last_weekday
    }

    pub(super) fn days(&self, month: Month) -> u32 {
        let mut days = self.plain.bits as u32;
        if self.is_plain() {
            return days;
        }
        let len = month.days();
        for back in bits(self.from_last).filter(|back| *back < len) {
            days |= 1 << (len - back);
        }
        for day in bits(self.nearest).filter(|day| *day <= len) {
            days |= 1 << nearest_weekday(month, day);
        }
        if self.last_weekday {
            days |= 1 << nearest_weekday_before(month, len);
        }
        days
    }

    pub(super) fn text(&self) -> String {
        let last = bits(self.from_last).map(|back| match back {
            0 => "L".to_owned(),
            back => format!("L-{back}"),
        });
        let nearest = bits(self.nearest).map(|day| format!("{day}W"));
        let last_weekday = self.last_weekday.then(|| "LW".to_owned());
        let special = last.chain(nearest).chain(last_weekday).collect();
        join_items(self.plain, FieldName::DayOfMonth, special)
    }
}

impl DayOfWeekField {
    pub(super) fn of(items: &[Item]) -> DayOfWeekField {
        let mut days = DayOfWeekField { plain: to_field(items), ..DayOfWeekField::default() };
        // Sunday is also 7.
        days.plain.bits = (days.plain.bits | days.plain.bits >> 7) & u64::from(WEEK_BITS);
        for item in items {
            match item {
                Item::Nth { weekday, nth } => {
                    if let Some(days) = days.nth.get_mut(usize::from(nth.saturating_sub(1))) {
                        *days |= 1 << weekday;
                    }
                }
                Item::LastOf { weekday } => days.last |= 1 << weekday,
                Item::Range { .. } | Item::FromLast(_) | Item::LastWeekday | Item::Nearest(_) => {}
            }
        }
        days
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.last == 0 && self.nth == [0; 5]
    }

    pub(super) fn days(&self, month: Month) -> u32 {
        let first = month.first_weekday();
        let mut days = days_on_weekdays(self.plain.bits as u32, first);
        if self.is_plain() {
            return days;
        }
        for (week, weekdays) in (0..).zip(self.nth) {
            days |= days_on_weekdays(weekdays, first) & WEEK_BITS << (1 + 7 * week);
        }
        days | (days_on_weekdays(self.last, first) & WEEK_BITS << (month.days() - 6))
    }

    pub(super) fn text(&self) -> String {
        let name = |day: u32| FieldName::DayOfWeek.text_of(day as u16);
        let nth = (1..).zip(self.nth).flat_map(|(nth, weekdays)| {
            bits(weekdays).map(move |day| format!("{}#{nth}", name(day)))
        });
        let last = bits(self.last).map(|day| format!("{}#L", name(day)));
        join_items(self.plain, FieldName::DayOfWeek, nth.chain(last).collect())
    }
}

/// Weekdays as cron writes them, from bits with Sunday = bit 0.
pub(crate) fn weekday_text(weekdays: u8) -> String {
    Field { bits: u64::from(weekdays), starts_with_star: false }.text(FieldName::DayOfWeek)
}

/// The plain part comes first, because it decides whether the field starts with a star.
fn join_items(plain: Field, name: FieldName, mut items: Vec<String>) -> String {
    if plain.bits != 0 {
        items.insert(0, plain.text(name));
    }
    items.join(",")
}

/// All days of a month that fall on these weekdays, given the weekday of day 1.
pub(crate) fn days_on_weekdays(weekdays: u32, first: u32) -> u32 {
    let from_first = (weekdays >> first | weekdays << (7 - first)) & WEEK_BITS;
    let weeks = (0..5).fold(0_u64, |days, week| days | u64::from(from_first) << (7 * week));
    (weeks << 1) as u32
}

/// The Monday to Friday nearest to a day, within the same month: from Saturday the 1st to Monday the
/// 3rd, from a Sunday at the end of the month back to Friday.
fn nearest_weekday(month: Month, day: u32) -> u32 {
    match (month.first_weekday() + day - 1) % 7 {
        SATURDAY if day == 1 => 3,
        SUNDAY if day < month.days() => day + 1,
        SATURDAY | SUNDAY => nearest_weekday_before(month, day),
        _ => day,
    }
}

fn nearest_weekday_before(month: Month, day: u32) -> u32 {
    match (month.first_weekday() + day - 1) % 7 {
        SATURDAY => day - 1,
        SUNDAY => day - 2,
        _ => day,
    }
}

/// The indices of the set bits, in order.
pub(crate) fn bits(mut set: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(bit)
    })
}
