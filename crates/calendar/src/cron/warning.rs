//! What to know about an accepted expression.

use super::Cron;
use super::field::{Field, FieldName};
use super::parse::{Form, Item, said};

/// An accepted expression that may mean something else than it seems to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    #[error(
        "`{item}` in the {field} field names fixed times, which run once when the clock goes back; \
         `{star}` would follow elapsed time"
    )]
    LooksLikeStar { field: FieldName, item: String, star: String },
    #[error(
        "`{item}` in the {field} field counts as a star, so a day must match both day fields; \
         other programs run it when either matches"
    )]
    SteppedStarAndDay { field: FieldName, item: String },
    #[error("`{item}` in the {field} field starts again at every {whole}, so its steps are uneven")]
    UnevenStep { field: FieldName, item: String, whole: &'static str },
    #[error(
        "`*` in the {field} field is all 60 of them in the {whole}, one after the other; `0` would be once"
    )]
    EveryOne { field: FieldName, whole: &'static str },
    #[error(
        "a day may match either day field, so this runs on each of the days {days} and on each \
         {weekday}; `{weekday}#{nth}` in the day-of-week field is that weekday among them"
    )]
    EitherDay { days: String, weekday: String, nth: u16 },
}

/// For the seconds, minute or hour field, as parsed and as typed.
pub(super) fn of_time(cron: &Cron, field: FieldName, items: &[Item], text: &str) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (item, text) in items.iter().zip(text.split(',')) {
        let Item::Range { first, last, step, form } = *item else { continue };
        let item = said(text);
        let covers = first == field.min() && last == field.max();
        if form == Form::Range && covers && cron.is_fixed_time() {
            let star = if step == 1 { "*".to_owned() } else { format!("*/{step}") };
            warnings.push(Warning::LooksLikeStar { field, item, star });
        } else if form == Form::Star && !field.len().is_multiple_of(step) {
            warnings.push(Warning::UnevenStep { field, item, whole: whole(field) });
        }
    }
    warnings
}

/// For a star before a field that names single times, as in `* 9 * * *`.
pub(super) fn of_star(field: FieldName, items: &[Item], of: &[Item]) -> Option<Warning> {
    let is_every = |item: &Item| matches!(item, Item::Range { form: Form::Star, step: 1, .. });
    let is_single = |item: &Item| matches!(item, Item::Range { form: Form::Value, .. });
    let is_meant = items.iter().any(is_every) && of.iter().all(is_single);
    is_meant.then(|| Warning::EveryOne { field, whole: whole(field) })
}

/// For the two day fields, as typed.
pub(super) fn of_days(cron: &Cron, day: &str, weekday: &str) -> Option<Warning> {
    stepped(cron, day, weekday).or_else(|| either(cron, day, weekday))
}

/// The days on which one weekday falls once, and that weekday: mostly the first Monday or so is meant.
fn either(cron: &Cron, day: &str, weekday: &str) -> Option<Warning> {
    let is_one = cron.weekdays.is_plain() && cron.weekdays.plain.bits.count_ones() == 1;
    if cron.both || !is_one || !cron.days.is_plain() {
        return None;
    }
    let nth = (1..=4).find(|nth| cron.days.plain.bits == 0x7f << (7 * (nth - 1) + 1))?;
    Some(Warning::EitherDay { days: said(day), weekday: said(weekday), nth })
}

fn stepped(cron: &Cron, day: &str, weekday: &str) -> Option<Warning> {
    let (days, weekdays) = (cron.days.plain, cron.weekdays.plain);
    let stepped = |field: Field, name| field.star && !field.is_full(name);
    let (field, item) = match (days.star, weekdays.star) {
        _ if cron.both => return None,
        (true, false) if stepped(days, FieldName::DayOfMonth) => (FieldName::DayOfMonth, day),
        (false, true) if stepped(weekdays, FieldName::DayOfWeek) => (FieldName::DayOfWeek, weekday),
        _ => return None,
    };
    Some(Warning::SteppedStarAndDay { field, item: said(item) })
}

fn whole(field: FieldName) -> &'static str {
    match field {
        FieldName::Second => "minute",
        FieldName::Minute => "hour",
        _ => "day",
    }
}
