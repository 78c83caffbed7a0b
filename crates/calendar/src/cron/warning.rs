//! Warnings about valid expressions.

use super::Cron;
use super::field::{Field, FieldName};
use super::parse::{Form, Item, quoted};

/// Why a valid expression may not mean what its author intended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    #[error(
        "`{item}` in the {field} field names fixed times, which run once when the clock goes back; \
         `{star}` follows elapsed time"
    )]
    LooksLikeStar { field: FieldName, item: String, star: String },
    #[error(
        "`{item}` in the {field} field counts as a star, so a day must match both day fields; \
         other programs run it when either matches"
    )]
    SteppedStarAndDay { field: FieldName, item: String },
    #[error("`{item}` in the {field} field restarts every {period}, so its steps are uneven")]
    UnevenStep { field: FieldName, item: String, period: &'static str },
    #[error("`*` in the {field} field fires 60 times per {period}; `0` fires once")]
    StarBeforeFixedTime { field: FieldName, period: &'static str },
    #[error(
        "a day has to match only one of the day fields, so this fires on the days {days} and on every \
         {weekday}; for {weekday} within those days, use `{weekday}#{nth}` in the day-of-week field"
    )]
    EitherDay { days: String, weekday: String, nth: u16 },
    #[error(
        "of six fields the first is the seconds; if the first is the minute, write `{instead}`"
    )]
    SecondsFirst { instead: String },
}

/// Warnings about the seconds, minute or hour field, given its items and its text.
pub(super) fn for_time_field(
    cron: &Cron,
    field: FieldName,
    items: &[Item],
    text: &str,
) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (item, text) in items.iter().zip(text.split(',')) {
        let Item::Range { first, last, step, form } = *item else { continue };
        let item = quoted(text);
        let covers = first == field.min() && last == field.max();
        if form == Form::Range && covers && cron.is_fixed_time() {
            let star = if step == 1 { "*".to_owned() } else { format!("*/{step}") };
            warnings.push(Warning::LooksLikeStar { field, item, star });
        } else if form == Form::Star && !field.len().is_multiple_of(step) {
            warnings.push(Warning::UnevenStep { field, item, period: period(field) });
        }
    }
    warnings
}

/// A warning about a star before a field of single values, as in `* 9 * * *`.
pub(super) fn for_star(field: FieldName, items: &[Item], next_items: &[Item]) -> Option<Warning> {
    let is_every = |item: &Item| matches!(item, Item::Range { form: Form::Star, step: 1, .. });
    let is_single = |item: &Item| matches!(item, Item::Range { form: Form::Value, .. });
    let fires_60_times = items.iter().any(is_every) && next_items.iter().all(is_single);
    fires_60_times.then(|| Warning::StarBeforeFixedTime { field, period: period(field) })
}

/// A warning about the two day fields, given their texts.
pub(super) fn for_day_fields(cron: &Cron, day: &str, weekday: &str) -> Option<Warning> {
    stepped(cron, day, weekday).or_else(|| either(cron, day, weekday))
}

/// For seven consecutive days and one weekday, such as `1-7` and `MON`: usually the first Monday is
/// meant.
fn either(cron: &Cron, day: &str, weekday: &str) -> Option<Warning> {
    let is_one = cron.weekdays.is_plain() && cron.weekdays.plain.bits.count_ones() == 1;
    if cron.requires_both_days || !is_one || !cron.days.is_plain() {
        return None;
    }
    let nth = (1..=4).find(|nth| cron.days.plain.bits == 0x7f << (7 * (nth - 1) + 1))?;
    Some(Warning::EitherDay { days: quoted(day), weekday: quoted(weekday), nth })
}

fn stepped(cron: &Cron, day: &str, weekday: &str) -> Option<Warning> {
    let (days, weekdays) = (cron.days.plain, cron.weekdays.plain);
    let stepped = |field: Field, name| field.starts_with_star && !field.is_full(name);
    let (field, item) = match (days.starts_with_star, weekdays.starts_with_star) {
        _ if cron.requires_both_days => return None,
        (true, false) if stepped(days, FieldName::DayOfMonth) => (FieldName::DayOfMonth, day),
        (false, true) if stepped(weekdays, FieldName::DayOfWeek) => (FieldName::DayOfWeek, weekday),
        _ => return None,
    };
    Some(Warning::SteppedStarAndDay { field, item: quoted(item) })
}

/// The unit of time after which a field repeats.
fn period(field: FieldName) -> &'static str {
    match field {
        FieldName::Second => "minute",
        FieldName::Minute => "hour",
        _ => "day",
    }
}
